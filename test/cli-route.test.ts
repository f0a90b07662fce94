/** `gatehouse route explain`, in the process of the test. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/route.ts'
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
})
