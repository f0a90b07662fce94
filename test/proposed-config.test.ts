/** Checks of large proposed configurations, which must not block the gateway. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigError } from '../src/config/check/problem.ts'
import { createProposedConfig } from '../src/gateway/proposed-config.ts'
import { type Clock, systemClock } from '../src/kit/clock.ts'
import { manualClock } from './kit/clock.ts'

const GATEHOUSE_CONTENTS_KEY = Buffer.from(Array.from({ length: 32 }, (_, at) => at)).toString('base64')
const directories: string[] = []
afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true })
})

function setUp(clock: Clock = systemClock, text = 'sandbox: true\n') {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-proposed-'))
  directories.push(data_dir)
  const file = join(data_dir, 'gatehouse.yaml')
  writeFileSync(file, text)
  return createProposedConfig({ environment: { KEPT: 'a-secret', GATEHOUSE_CONTENTS_KEY }, file, data_dir, clock })
}

/** How often the event loop turns until the work is done. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  let turns = 0
  let isDone = false
  const turn = (): void => {
    turns++
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  const result = await work.finally(() => {
    isDone = true
  })
  return { turns, result }
}

const LARGE = `projects:\n${Array.from({ length: 9_000 }, (_, n) => `  project-${n}: {}\n`).join('')}`

describe('a proposed configuration', () => {
  it('of 9,000 projects is checked while the event loop runs', async () => {
    const { turns, result } = await turnsDuring(setUp().check(LARGE))
    expect(result.changes.filter(({ path }) => path.startsWith('projects.'))).toHaveLength(9_000)
    expect(turns).toBeGreaterThan(20)
  })

  it('has the same problems in a thread as at once', async () => {
    const config = setUp()
    const text = "server: { port: many, host: '${OTHER}' }\nrequest_log: { sinks: [{ file: { path: /etc/x.log } }] }\n"
    const problemsOf = async (proposed: string) =>
      config.check(proposed).then(
        () => [],
        (error: ConfigError) => error.problems,
      )
    const [small, large] = [await problemsOf(text), await problemsOf(`${text}${'#'.repeat(20_000)}\n`)]
    expect(small).toHaveLength(3)
    expect(large).toEqual(small)
  })

  it('that takes too long is given up', async () => {
    const clock = manualClock()
    const work = setUp(clock).check(LARGE)
    const outcome = work.catch((error: Error) => error.message)
    await new Promise((resolve) => setImmediate(resolve)) // the thread is started in the queue
    clock.advance(20_000)
    expect(await outcome).toContain('takes longer than 20 seconds to check')
  })

  it('sends the client secret of an MCP server nowhere else, and gives no token to a person', async () => {
    const user =
      "issuer: https://login.vendor.test, client_id: gatehouse, client_secret: '${KEPT}', tokens: { tok_a: ada }"
    const text = `admin: { oidc: { issuer: 'https://login.test', client_id: c, client_secret: s, role_claim: g, roles: { a: { role: owner } } } }
mcp: { servers: { v: { url: 'https://mcp.vendor.test/mcp', oauth_user: { ${user} } } } }
`
    const { check } = setUp(systemClock, text)
    expect((await check(text)).changes).toEqual([])
    const refused: [string, string, string][] = [
      ['mcp.vendor.test', 'mcp.evil.test', 'elsewhere than the file'],
      ['login.vendor.test', 'login.evil.test', 'elsewhere than the file'],
      ['tok_a: ada', 'tok_b: ada', 'lets a token act as a person'],
      ['tok_a: ada', 'tok_a: bob', 'lets a token act as a person'],
    ]
    for (const [before, after, message] of refused) {
      const problems = await check(text.replace(before, after)).then(
        () => '',
        (error: ConfigError) => JSON.stringify(error.problems),
      )
      expect([after, problems]).toEqual([after, expect.stringContaining(message)])
    }
  })

  it('nested 20,000 times is refused at once', async () => {
    const { check } = setUp()
    for (const text of ['['.repeat(16_000), `${'? '.repeat(8_000)}a`, '['.repeat(200_000)]) {
      await expect(check(text)).rejects.toThrow('is nested too deeply or has too many values')
    }
  })
})
