import { describe, expect, test } from 'bun:test'
import { type Change, editYaml, type Tree } from './edit-yaml.ts'

const model = (id: string, tree: Tree): Change => ({ path: ['models', id], tree })
const PRICES = { prices: { input: 2.5, source: 'models.dev', as_of: '2026-11-01' } }

const WRITTEN = `# head

models: # the models
  # about large
  acme/large:   # trailing
    limits:
      max_tokens: { minimum: 1, default: 4096 } # per call
    prices:
      input:   2.5     # spaced
      cached_input: 1  # cheaper
      source: models.dev
    # the end of large

  # about small
  acme/small:

  x/y: {}

tail:   'quoted'
`

describe('editYaml', () => {
  test('changes only its own lines and preserves comments, blanks and quotes elsewhere', () => {
    const { text } = editYaml(WRITTEN, [
      model('acme/large', {
        limits: { max_tokens: { maximum: 8192 } },
        prices: { input: 3, cached_input: undefined, output: 10 },
        created: 5,
      }),
      model('acme/small', PRICES),
      model('x/y', { context_tokens: 128_000 }),
      model('acme/new:free', { status: 'deprecated', capabilities: { tools: false } }),
    ])
    expect(text).toBe(`# head

models: # the models
  # about large
  acme/large:   # trailing
    limits:
      max_tokens: { minimum: 1, default: 4096, maximum: 8192 } # per call
    prices:
      input:   3     # spaced
      source: models.dev
      output: 10
    created: 5
    # the end of large

  # about small
  acme/small:
    prices: { input: 2.5, source: models.dev, as_of: "2026-11-01" }

  x/y: { context_tokens: 128000 }
  "acme/new:free":
    status: deprecated
    capabilities: { tools: false }

tail:   'quoted'
`)
  })

  test.each([
    ['an empty file', '', 'models:\n  a/b:\n    created: 1\n'],
    ['a file of comments', '# only this', '# only this\n\nmodels:\n  a/b:\n    created: 1\n'],
    ['a file without models', 'sandbox: true\n', 'sandbox: true\n\nmodels:\n  a/b:\n    created: 1\n'],
    [
      'an empty section',
      'models: # none yet\nsandbox: true',
      'models: # none yet\n  a/b:\n    created: 1\nsandbox: true',
    ],
    ['a section without a line end', 'models:\n  x/y: {}', 'models:\n  x/y: {}\n  a/b:\n    created: 1\n'],
    ['a section in braces', 'models: { x/y: {} } # all\n', 'models: { x/y: {}, a/b: { created: 1 } } # all\n'],
    ['a file in braces', '{ sandbox: true }\n', '{ sandbox: true, models: { a/b: { created: 1 } } }\n'],
    ['a model that is null', 'models:\n  a/b: ~ # nothing\n', 'models:\n  a/b: { created: 1 } # nothing\n'],
    ['lines of Windows', 'models:\r\n  x/y: {}\r\n', 'models:\r\n  x/y: {}\r\n  a/b:\r\n    created: 1\r\n'],
    ['wide indentation', 'models:\n    x/y: {}\n', 'models:\n    x/y: {}\n    a/b:\n        created: 1\n'],
    [
      'a comment that belongs to the last model',
      'models:\n  x/y:\n    created: 2\n    # of y\n# of none\n',
      'models:\n  x/y:\n    created: 2\n    # of y\n  a/b:\n    created: 1\n# of none\n',
    ],
    [
      'a value from the environment',
      'models:\n  a/b:\n    created: ${WHEN:-7} # $${x}\n',
      'models:\n  a/b:\n    created: 1 # $${x}\n',
    ],
    [
      'a value of several lines before the end',
      'models:\n  a/b:\n    replaced_by: >-\n      x/y\n\nsandbox: true\n',
      'models:\n  a/b:\n    replaced_by: >-\n      x/y\n    created: 1\n\nsandbox: true\n',
    ],
  ])('edits %s', (_, before, after) => {
    const { text, refused } = editYaml(before, [model('a/b', { created: 1 })])
    expect({ text, refused }).toEqual({ text: after, refused: [] })
  })

  test.each([
    ['models:\n  x/y: &base\n    created: 2\n  a/b: *base\n', 'it is written as *base, which other places share'],
    ['models:\n  a/b: &base\n    created: 2\n  x/y: *base\n', 'it is part of &base, which other places may share'],
    ['models:\n  a/b: { created: &when 2 }\n', 'a value is written as &when, which others may share'],
    ['models: { a/b: ~ }\n', 'it is empty within braces'],
    [
      'models:\n  x/y: &base { limits: { top_p: { maximum: 1 } } }\n  a/b: { <<: *base, created: 2 }\n',
      'its limits come from "<<"',
    ],
  ])('rejects a change that would affect another place, and applies the others: %#', (before, why) => {
    const change = model('a/b', { created: 1, limits: { max_tokens: { maximum: 9 } } })
    const { text, refused } = editYaml(before, [change, model('c/d', { created: 3 })])
    expect(refused).toEqual([{ change, why }])
    expect(text).toContain('c/d')
    expect(text).not.toContain('max_tokens')
  })

  test('throws when a change is not possible without changing something else', () => {
    expect(() => editYaml('sandbox: true\n...\n', [model('a/b', { created: 1 })])).toThrow('cannot be edited')
  })

  test('preserves every byte when nothing changes', () => {
    expect(editYaml(WRITTEN, []).text).toBe(WRITTEN)
    expect(editYaml(WRITTEN, [model('x/y', { status: undefined })]).text).toBe(WRITTEN)
  })

  test('removes a member inside braces at any position', () => {
    const without = (prices: string) =>
      editYaml(`models: { a/b: { prices: ${prices} } }`, [model('a/b', { prices: { cached_input: undefined } })]).text
    expect(without('{ cached_input: 1, input: 2 }')).toBe('models: { a/b: { prices: { input: 2 } } }')
    expect(without('{ input: 2, cached_input: 1 }')).toBe('models: { a/b: { prices: { input: 2 } } }')
    expect(without('{ input: 2, cached_input: 1, output: 3 }')).toBe(
      'models: { a/b: { prices: { input: 2, output: 3 } } }',
    )
  })

  test('changes many models at once', () => {
    const many = Array.from({ length: 600 }, (_, index) => model(`acme/m${index}`, PRICES))
    const { text } = editYaml(WRITTEN, many)
    expect(text.match(/as_of/g)?.length).toBe(600)
    expect(editYaml(text, many).text).toBe(text)
  })

  test('writes references to variables as they are', () => {
    const text = 'models:\n  a/b: { created: 1 } # ${X} $${y}\n'
    const edited = editYaml(text, [model('a/b', { owner: '${OWNER} $${x}' })]).text
    expect(edited).toBe('models:\n  a/b: { created: 1, owner: "${OWNER} $${x}" } # ${X} $${y}\n')
  })

  test('refuses a name that would change every object', () => {
    const tree = JSON.parse('{ "__proto__": { "polluted": "yes" } }') as Tree
    for (const change of [model('__proto__', { polluted: 'yes' }), model('a/b', tree)]) {
      expect(editYaml('', [change])).toMatchObject({ text: '', refused: [{ why: 'no member can be named __proto__' }] })
      expect({}).not.toHaveProperty('polluted')
    }
  })
})
