import { describe, expect, it } from 'bun:test'
import { loadConfig } from '../load/load.ts'
import { ConfigError } from './problem.ts'
import { expansionProblem } from './variable-places.ts'

const SECRET = 'owner-token-of-the-environment'
const environment = {
  ACME_KEY: SECRET,
  GATEHOUSE_ADMIN_TOKEN: SECRET,
  GATEHOUSE_CONTENTS_KEY_OLD: '',
  WORDS: 'redirect',
}

function problemsOf(text: string): string[] {
  try {
    loadConfig({ environment, cwd: '/nowhere', readFile: () => text })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, message }) => `${path}: ${message}`)
  }
}

const PROVIDER = "acme: { base_url: 'https://api.acme.test/v1', key: k }"

describe('a variable in the configuration', () => {
  it.each([
    ['projects.a.labels.team', "projects: { a: { labels: { team: 'x${ACME_KEY}' } } }"],
    ['projects.a.models[0]', "projects: { a: { models: ['${ACME_KEY}'] } }"],
    ['api_tokens.a.labels.team', "api_tokens: { a: { secret: '${ACME_KEY}', labels: { team: '${ACME_KEY}' } } }"],
    ['tokens.models[0]', "tokens: { models: ['${ACME_KEY}'] }"],
    ['ledger.currency', "ledger: { currency: '${ACME_KEY}' }"],
    [
      'models.a/b.targets[0].model',
      `providers: { ${PROVIDER} }\nmodels: { a/b: { targets: [{ provider: acme, model: '\${ACME_KEY}' }] } }`,
    ],
    ['models.a/b.prices.source', "models: { a/b: { prices: { source: '${ACME_KEY}' } } }"],
    [
      'providers.acme.keys[0].name',
      "providers: { acme: { base_url: 'https://a.test', keys: [{ key: x, name: '${ACME_KEY}' }] } }",
    ],
  ])('is refused at %s, which an API shows', (path, text) => {
    const problems = problemsOf(text)
    expect(problems.join('\n')).toContain(`${path}: may not contain a variable`)
    expect(problems.join('\n')).not.toContain(SECRET)
  })

  it('is refused where an anchor or a merge puts it into a text that is shown', () => {
    const text = "api_tokens: { a: { secret: &s '${ACME_KEY}' } }\nprojects: { a: { labels: { team: *s } } }\n"
    expect(problemsOf(text).join('\n')).toContain('projects.a.labels.team: may not contain a variable')
    const merged = "api_tokens: { a: { secret: '${ACME_KEY}', labels: { <<: { team: '${ACME_KEY}' } } } }"
    expect(problemsOf(merged).join('\n')).toContain('labels.team: may not contain a variable')
  })

  it.each([
    "providers: { acme: { base_url: 'https://api.acme.test/v1', key: '${ACME_KEY}' } }",
    "providers: { acme: { base_url: 'https://api.acme.test/v1', key: k, headers: { x-key: '${ACME_KEY}' } } }",
    "api_tokens: { a: { secret: '${ACME_KEY}' } }",
    "server: { port: '${PORT:-8787}', host: '${HOST:-127.0.0.1}' }",
    "sandbox: '${SANDBOX:-false}'",
    "when_retired: '${WORDS}'",
    "projects: { a: { labels: { team: '$${ACME_KEY}' } } }",
  ])('is replaced in secrets, locations, numbers and enumerated values: %s', (text) => {
    expect(problemsOf(text)).toEqual([])
  })

  it('never is a secret of the gateway itself', () => {
    const problems = problemsOf("providers: { acme: { base_url: 'https://a.test', key: '${GATEHOUSE_ADMIN_TOKEN}' } }")
    expect(problems).toEqual([
      'providers.acme.key: may not contain ${GATEHOUSE_ADMIN_TOKEN}: it is a secret that only the gateway itself reads',
    ])
  })

  it('in an unknown setting leaves the error to that setting', () => {
    expect(expansionProblem(['no', 'such'], ['ACME_KEY'])).toBeUndefined()
  })
})

describe('a key of the configuration', () => {
  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('named %s is unknown like any other', (name) => {
    expect(problemsOf(`${name}: 1\n`).join()).toContain(`unknown key "${name}"`)
    expect(problemsOf(`server: { ${name}: {} }\n`).join()).toContain(`unknown key "${name}"`)
    expect(problemsOf(`providers: { a: { base_url: 'https://a.test', ${name}: x } }\n`).join()).toContain(`"${name}"`)
  })
})
