/** Limits of what an owner may put into the configuration file over the admin API: no path, variable or destination of its own choice. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import { type AdminGateway, OWNER, refusal, startAdminGateway } from './kit/admin.ts'

const SECRET = 'sk-of-the-environment-0123456789'
const environment = {
  ACME_KEY: SECRET,
  LISTED_KEY: SECRET,
  OTHER_KEY: SECRET,
  OPENAI_API_KEY: SECRET,
  GATEHOUSE_ADMIN_TOKEN: OWNER,
  GATEHOUSE_CONFIG_VARIABLES: 'LISTED_KEY',
  OTEL_EXPORTER_OTLP_HEADERS: `authorization=${SECRET}`,
}
const KEPT = `admin: { config_variables: [FILE_KEY] }
server: { port: "\${PORT:-8787}" }
request_log: { sinks: [{ file: { path: /var/log/gatehouse/requests.txt } }] }
`
const TEXT = `${KEPT}providers:
  acme: { base_url: 'https://api.acme.test/v1', key: "\${ACME_KEY}" }
`

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Problem = { path: string; message: string }

async function start(settings: Parameters<typeof startAdminGateway>[0] = {}, variables: Record<string, string> = {}) {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-limits-'))
  closing.push(() => rmSync(root, { recursive: true }))
  const [file, data_dir] = [join(root, 'gatehouse.yaml'), join(root, 'data')]
  mkdirSync(data_dir)
  writeFileSync(file, TEXT)
  const gateway: AdminGateway = await startAdminGateway(
    { file, data_dir, ...settings },
    { environment: { ...environment, ...variables } },
  )
  closing.push(() => gateway[Symbol.asyncDispose]())
  const problemsOf = async (text: string) =>
    (await gateway.read<{ problems: Problem[] }>('/config/validate', { json: { text } })).problems
  return { gateway, file, data_dir, root, problemsOf }
}

describe('POST /admin/v1/config/apply', () => {
  it('accepts the text of the file with another change, whatever it takes and names', async () => {
    const { gateway, file } = await start()
    const text = `${TEXT}sandbox: false\n`
    const response = await gateway.admin('/config/apply', { json: { text } })
    expect([response.status, readFileSync(file, 'utf8')]).toEqual([200, text])
  })

  it('writes nothing where the text names a file outside of the data directory', async () => {
    const { gateway, file, root } = await start()
    const text = `request_log: { sinks: [{ file: { path: ${join(root, '.bashrc')} } }] }\n`
    const response = await gateway.admin('/config/apply', { json: { text } })
    expect(await refusal(response)).toEqual([400, 'invalid_value'])
    expect(readFileSync(file, 'utf8')).toBe(TEXT)
  })
})

describe('a path given by the admin API', () => {
  const sink = (path: string) => `request_log: { sinks: [{ file: { path: '${path}' } }] }\n`

  it('may be below the data directory, or that of the file on disk', async () => {
    const { problemsOf, data_dir } = await start()
    for (const text of [
      sink('requests.ndjson'),
      sink('logs/requests.jsonl'),
      sink('/var/log/gatehouse/requests.txt'),
      `outputs: { directory: ${data_dir}/files }\n`,
      `data_dir: ${data_dir}\n`,
    ]) {
      expect([text, await problemsOf(text)]).toEqual([text, []])
    }
  })

  it('may not change the data directory for a later start without the variable that sets it now', async () => {
    const { problemsOf, data_dir } = await start({}, { GATEHOUSE_DATA_DIR: '/var/lib/gatehouse' })
    expect(await problemsOf('data_dir: /etc\n')).toMatchObject([{ path: 'data_dir' }])
    expect(await problemsOf(`data_dir: ${data_dir}\n`)).toEqual([])
  })

  it('may not remove the data directory of the file, without which the next start would use another one', async () => {
    const { gateway, file, problemsOf } = await start()
    const text = `data_dir: ./data\n${TEXT}`
    writeFileSync(file, text)
    expect(await problemsOf(TEXT)).toMatchObject([
      { path: 'data_dir', message: 'cannot be removed by the admin API; remove it from the file itself' },
    ])
    const response = await gateway.admin('/config/apply', { json: { text: TEXT } })
    expect(await refusal(response)).toEqual([400, 'invalid_value'])
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('may be nowhere else', async () => {
    const { problemsOf, data_dir, root } = await start()
    symlinkSync(root, join(data_dir, 'link'))
    symlinkSync(join(root, 'nothing.log'), join(data_dir, 'dangling.log'))
    writeFileSync(join(data_dir, 'a-file'), '')
    const cases: [string, string, string][] = [
      [sink('/root/.bashrc'), 'request_log.sinks[0].file.path', 'must be below the data directory'],
      [sink('../outside.log'), 'request_log.sinks[0].file.path', 'must be below the data directory'],
      [sink('a/../../outside.log'), 'request_log.sinks[0].file.path', 'must be below the data directory'],
      [sink('.'), 'request_log.sinks[0].file.path', 'must be below the data directory'],
      [sink('link/outside.log'), 'request_log.sinks[0].file.path', 'symbolic link'],
      [sink('dangling.log'), 'request_log.sinks[0].file.path', 'symbolic link'],
      [sink('a-file/x.log'), 'request_log.sinks[0].file.path', 'or a file'],
      [sink('gatehouse.db.log'), 'request_log.sinks[0].file.path', 'keeps its own files'],
      [sink('spool/x.log'), 'request_log.sinks[0].file.path', 'keeps its own files'],
      [sink('authorized_keys'), 'request_log.sinks[0].file.path', 'must end with .ndjson'],
      ['outputs: { directory: /var/www }\n', 'outputs.directory', 'must be below the data directory'],
      [`outputs: { directory: ${data_dir}/link }\n`, 'outputs.directory', 'symbolic link'],
      ['data_dir: /elsewhere\n', 'data_dir', 'cannot be changed by the admin API'],
      [
        'providers: { g: { kind: google-vertex, options: { project: p, credentials: /etc/key.json } } }\n',
        'providers.g.options.credentials',
        'must be below the data directory',
      ],
    ]
    for (const [text, path, message] of cases) {
      const problems = await problemsOf(text)
      expect([text, problems.map((one) => one.path)]).toEqual([text, [path]])
      expect(problems[0]?.message).toContain(message)
    }
  })
})

describe('a variable given by the admin API', () => {
  const key = (value: string, id = 'new') =>
    `providers: { ${id}: { base_url: 'https://api.new.test/v1', key: '${value}' } }\n`

  it('may be one that the environment or the file on disk lists, in a secret', async () => {
    const { problemsOf } = await start()
    expect(await problemsOf(key('${LISTED_KEY}'))).toEqual([])
    expect((await problemsOf(key('${FILE_KEY}'))).map(({ message }) => message)).toEqual([
      'the environment variable FILE_KEY is not set',
    ])
  })

  it('may be nothing else', async () => {
    const { problemsOf } = await start()
    for (const [text, message] of [
      [key('${OTHER_KEY}'), 'may not take ${OTHER_KEY} by the admin API'],
      [key('x${OTHER_KEY:-y}'), 'may not take ${OTHER_KEY} by the admin API'],
      [key('${file:/etc/passwd}'), 'the admin API reads no other files'],
      [key('${GATEHOUSE_ADMIN_TOKEN}'), 'only the gateway itself reads'],
      ["projects: { a: { labels: { team: '${LISTED_KEY}' } } }\n", 'since the API shows this setting'],
      ["server: { host: '${LISTED_KEY}' }\n", 'by the admin API only secrets may'],
      ["server: { port: '${OTHER:-80}' }\n", 'by the admin API only secrets may'],
      ['admin: { config_variables: [OTHER_KEY] }\n', 'cannot be added by the admin API'],
    ] as const) {
      const problems = await problemsOf(text)
      expect([text, problems.map((one) => one.message)]).toEqual([
        text,
        expect.arrayContaining([expect.stringContaining(message)]),
      ])
      expect(JSON.stringify(problems)).not.toContain(SECRET)
    }
  })

  it('goes only where the file on disk sends it', async () => {
    const { problemsOf } = await start()
    const moved = TEXT.replace('api.acme.test', 'api.evil.test')
    const problems = await problemsOf(moved)
    expect(problems).toEqual([
      expect.objectContaining({
        path: 'providers.acme',
        message: expect.stringContaining('would send ${ACME_KEY} elsewhere'),
      }),
    ])
    expect(await problemsOf(moved.replace('ACME_KEY', 'LISTED_KEY'))).toEqual([])
  })

  it('that stands in a file goes only where the file on disk sends it', async () => {
    const { problemsOf, file, root } = await start()
    writeFileSync(join(root, 'key'), SECRET)
    const withFile = (member: string, id = 'acme') =>
      `providers: { ${id}: { base_url: 'https://api.acme.test/v1', ${member} } }\n`
    writeFileSync(file, withFile('key_file: key'))
    expect(await problemsOf(withFile('key_file: key, concurrency: 2'))).toEqual([])
    const elsewhere = await problemsOf(withFile('key_file: key').replace('acme.test', 'evil.test'))
    expect(elsewhere.map((one) => one.message)).toEqual([expect.stringContaining('${file:key} elsewhere')])
    for (const text of [
      withFile('key_file: key', 'other'),
      withFile('keys: [{ key_file: key }]', 'other'),
      withFile("key: '${file:key}'", 'other'),
      withFile("headers: { x-key: '${file:key}' }", 'other'),
    ]) {
      const problems = await problemsOf(text)
      expect([text, problems.map((one) => one.message).join()]).toEqual([
        text,
        expect.stringContaining('the configuration file on disk does not name it here'),
      ])
    }
  })

  it('from which a provider of the file has its key may stand beside a second one, at its vendor only', async () => {
    const { problemsOf, file } = await start()
    const text = (id: string, settings: string) => `providers: { ${id}: { ${settings} } }\n`
    const both = "keys: [{ name: main, key: '${OPENAI_API_KEY}' }, { name: spare, key: own }]"
    const messages = async (given: string) => (await problemsOf(given)).map(({ message }) => message).join()
    for (const [id, settings] of [
      ['openai', 'preset: openai'],
      ['mine', 'preset: openai'],
    ] as const) {
      writeFileSync(file, text(id, settings))
      const beside = `${settings}, `
      expect(await messages(text(id, `${beside}${both}`))).toBe('')
      expect(await messages(text(id, `${beside}key: '\${OPENAI_API_KEY}'`))).toBe('')
      for (const attack of [
        text(id, `${beside}${both}, base_url: 'https://api.evil.test/v1'`),
        text(id, `${both}, preset: groq`),
        text(id, `${both}, kind: messages-compat, base_url: 'https://api.evil.test'`),
        text(id, `${beside}${both}, options: { region: evil }`),
        text(id, `${beside}${both.replace('OPENAI_API_KEY', 'OTHER_KEY')}`),
        text(id, `${beside}key: '\${OPENAI_API_KEY}\${OTHER_KEY}'`),
        text(id, `${beside}headers: { x-key: '\${OPENAI_API_KEY}' }`),
        text('other', `preset: openai, ${both}`),
        text('other', `base_url: 'https://api.evil.test/v1', ${both}`),
        text('__proto__', both),
      ]) {
        expect([attack, await messages(attack)]).toEqual([attack, expect.stringMatching(/by the admin API|elsewhere/)])
      }
    }
    // The file names a key, another address or another vendor: its variable is not sent there now.
    for (const settings of [
      'preset: openai, key: own',
      "preset: openai, base_url: 'https://a.test/v1'",
      'preset: groq',
    ]) {
      writeFileSync(file, text('mine', settings))
      const given = text('mine', `${settings.replace(', key: own', '')}, ${both}`)
      expect([settings, await messages(given)]).toEqual([settings, expect.stringMatching(/may not take/)])
    }
  })

  it('that a provider or exporter reads by itself goes nowhere else either', async () => {
    const { problemsOf } = await start()
    for (const [text, name] of [
      ["providers: { new: { preset: openai, base_url: 'https://api.evil.test/v1' } }\n", 'OPENAI_API_KEY'],
      ["telemetry: { otlp: { endpoint: 'https://otlp.evil.test' } }\n", 'OTEL_EXPORTER_OTLP_HEADERS'],
    ] as const) {
      const problems = await problemsOf(text)
      expect([text, problems.map((one) => one.message)]).toEqual([text, [expect.stringContaining(`\${${name}}`)]])
    }
    expect(await problemsOf('providers: { new: { preset: openai } }\n')).toEqual([])
    expect(
      await problemsOf("providers: { new: { preset: openai, base_url: 'https://api.new.test/v1', key: own } }\n"),
    ).toEqual([])
  })
})

describe('admin.config_by_api', () => {
  it.each([
    ['off', [403, 403, 403]],
    ['validate', [200, 200, 403]],
    ['apply', [200, 200, 200]],
  ] as const)('%s', async (config_by_api, statuses) => {
    const { gateway, file } = await start({ admin: { ...DEFAULT_ADMIN, config_by_api } })
    const found: number[] = []
    for (const action of ['validate', 'diff', 'apply']) {
      const response = await gateway.admin(`/config/${action}`, { json: { text: `${TEXT}sandbox: true\n` } })
      found.push(response.status)
      if (response.status === 403) expect(await response.text()).toContain(`admin.config_by_api: ${config_by_api}`)
    }
    expect(found).toEqual([...statuses])
    expect(readFileSync(file, 'utf8') === TEXT).toBe(config_by_api !== 'apply')
  })
})
