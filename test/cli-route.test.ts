/** `gatehouse route explain`, in the process of the test. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/route.ts'
import { collectingTerminal } from './kit/terminal.ts'

const CONFIG = `discover: false
providers:
  one: { base_url: http://127.0.0.1:9/v1, keys: [{ key: secret-key-0001, name: main, weight: 3 }, { key: secret-key-0002 }] }
  two: { base_url: http://127.0.0.1:9/v1, key: secret-key-0003 }
models:
  house/fast:
    targets: [{ provider: one, model: m1 }, { provider: two, model: m2 }]
    routing: { tries: 4, deadline_seconds: 20 }
    fallbacks: { context_length: [house/long] }
  house/long: { targets: [{ provider: two, model: m3 }] }
  quick: { alias_of: house/fast }
`

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'gatehouse-cli-route-'))
  writeFileSync(join(cwd, 'gatehouse.yaml'), CONFIG)
})
afterEach(() => rmSync(cwd, { recursive: true }))

async function explain(...args: string[]) {
  const { terminal, printed } = collectingTerminal({ cwd })
  const code = await run(['explain', ...args], terminal)
  return { code, ...printed }
}

describe('gatehouse route explain', () => {
  test('shows the targets in order, names keys and contains none', async () => {
    const { code, out } = await explain('--model', 'quick')
    expect(code).toBe(0)
    expect(out).toContain('house/fast (requested: quick)')
    expect(out).toMatch(/1 +one\/m1 +main +0 +0\.75 +60 s +yes/)
    expect(out).toMatch(/3 +two\/m2 +- +1 +1 +60 s +yes/)
    expect(out).toMatch(/fallback: context_length +house\/long/)
    expect(out).toContain('the memory of a running gateway is not part of it')
    expect(out).not.toContain('secret-key')
  })

  test('prints JSON, for the stream of a body', async () => {
    writeFileSync(join(cwd, 'request.json'), JSON.stringify({ model: 'house/fast', stream: true }))
    const { out } = await explain('--body', 'request.json', '--json')
    const found = JSON.parse(out)
    expect(found).toMatchObject({ model: 'house/fast', family: 'chatcompat', tries: 4, deadline_seconds: 20 })
    expect(found).toMatchObject({ status: 'active', memory: 'none', fallbacks: { context_length: ['house/long'] } })
    expect(found.targets.map((one: { first_byte_seconds: number }) => one.first_byte_seconds)).toEqual([15, 15, 15])
  })

  test('says what an unknown model, family or body should be', async () => {
    await expect(explain('--model', 'house/fats')).rejects.toThrow('did you mean "house/fast"?')
    await expect(explain('--model', 'house/fast', '--family', 'embedings')).rejects.toThrow(
      'did you mean "embeddings"?',
    )
    await expect(explain('--model', 'house/fast', '--family', 'embeddings')).rejects.toThrow(
      'takes no embeddings requests',
    )
    await expect(explain()).rejects.toThrow('needs a model')
    writeFileSync(join(cwd, 'list.json'), '[]')
    await expect(explain('--body', 'list.json')).rejects.toThrow('list.json: must be a JSON object')
  })

  test('names the option and the file of a body that does not exist', async () => {
    await expect(explain('--body', 'none.json')).rejects.toThrow(
      /^--body: none\.json cannot be read: there is no such file$/,
    )
  })

  test('reads tools, images and size of the body, and says why a target does not take it', async () => {
    writeFileSync(join(cwd, 'gatehouse.yaml'), CONDITIONS)
    const explainBody = async (body: object, ...more: string[]) => {
      writeFileSync(join(cwd, 'request.json'), JSON.stringify(body))
      const { out } = await explain('--body', 'request.json', '--json', ...more)
      const { targets, ...others } = JSON.parse(out)
      const shown = targets.map(({ target, order, available, reason }: Record<string, unknown>) => [
        target,
        order,
        available,
        reason,
      ])
      return { shown, targets, ...others }
    }
    const ask = { model: 'house/when', messages: [{ role: 'user', content: 'hi' }] }
    expect((await explainBody(ask)).shown).toEqual([
      ['two/plain', 1, true, undefined],
      ['one/tools', null, false, 'it must have tools'],
      ['one/large', null, false, expect.stringContaining('at least 100 input tokens')],
      ['one/eu', null, false, 'it must have the tag "eu"'],
    ])
    const tools = [{ type: 'function', function: { name: 'f' } }]
    expect((await explainBody({ ...ask, tools })).shown[0]).toEqual(['one/tools', 1, true, undefined])
    const long = [{ role: 'user', content: 'word '.repeat(400) }]
    expect((await explainBody({ ...ask, messages: long })).shown[0]).toEqual(['one/large', 1, true, undefined])
    expect((await explainBody(ask, '--tags', 'x,eu')).shown[0]).toEqual(['one/eu', 1, true, undefined])
    const input = { model: 'house/when', input: 'word '.repeat(400) }
    expect((await explainBody(input, '--family', 'chatcompat-response')).shown[0]).toEqual([
      'one/large',
      1,
      true,
      undefined,
    ])
    const own = { max_tokens: 5, messages: long }
    const family = ['--family', 'messages-compat', '--model', 'house/when']
    expect((await explainBody(own, ...family)).shown[0]).toEqual(['one/large', 1, true, undefined])
    await expect(explainBody({ ...ask, messages: 'hi' })).rejects.toThrow('"messages" must be')
  })

  test('obeys `models` and `provider` of the body, and shows expected costs', async () => {
    writeFileSync(join(cwd, 'gatehouse.yaml'), CONDITIONS)
    const provider = { ignore: ['two'], sort: 'price' }
    const body = { models: ['house/cheap', 'house/when'], provider, messages: [{ role: 'user', content: 'hi' }] }
    writeFileSync(join(cwd, 'request.json'), JSON.stringify(body))
    const found = JSON.parse((await explain('--body', 'request.json', '--json')).out)
    expect(found).toMatchObject({ model: 'house/cheap', strategy: 'cheapest' })
    expect(found.fallbacks).toMatchObject({ unavailable: ['house/when'], context_length: ['house/when'] })
    const [first, second, third, left] = found.targets
    expect([first.target, first.order, second.order, third.order]).toEqual(['one/dear', 2, 1, 3])
    expect(first.expected_cost / second.expected_cost).toBeCloseTo(3)
    expect(third.expected_cost).toBeNull()
    expect(left).toMatchObject({ target: 'two/free', order: null, reason: 'in "provider.ignore"' })
    const { out } = await explain('--body', 'request.json')
    expect(out).toContain('COST')
    expect(out).toMatch(/one\/unpriced .* unknown/)
    expect(out).toMatch(/- +two\/free .*no: in "provider.ignore"/)
    writeFileSync(join(cwd, 'request.json'), JSON.stringify({ ...body, provider: { only: ['nobody'] } }))
    await expect(explain('--body', 'request.json')).rejects.toThrow('"provider.only" must be')
  })
})

const CONDITIONS = `discover: false
providers:
  one: { base_url: http://127.0.0.1:9/v1, key: secret-key-0001 }
  two: { base_url: http://127.0.0.1:9/v1, key: secret-key-0003 }
models:
  house/when:
    families: [chatcompat, messages-compat, chatcompat-response]
    targets:
      - { provider: one, model: tools, when: { tools: true } }
      - { provider: one, model: large, when: { min_input_tokens: 100 } }
      - { provider: one, model: eu, when: { tags: [eu] } }
      - { provider: two, model: plain }
  house/cheap:
    targets:
      - { provider: one, model: dear, prices: { input: 3, output: 3 } }
      - { provider: one, model: low, prices: { input: 1, output: 1 } }
      - { provider: one, model: unpriced }
      - { provider: two, model: free, prices: { input: 0 } }
`
