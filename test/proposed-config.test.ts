/** Checks of large proposed configurations, which must not block the gateway. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigError } from '../src/config/check/problem.ts'
import { createProposedConfig } from '../src/gateway/proposed-config.ts'
import { type Clock, systemClock } from '../src/kit/clock.ts'
import { manualClock } from './kit/clock.ts'

const directories: string[] = []
afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true })
})

function setUp(clock: Clock = systemClock) {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-proposed-'))
  directories.push(data_dir)
  const file = join(data_dir, 'gatehouse.yaml')
  writeFileSync(file, 'sandbox: true\n')
  return createProposedConfig({ environment: { KEPT: 'a-secret' }, file, data_dir, clock })
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

  it('nested 20,000 times is refused at once', async () => {
    const { check } = setUp()
    for (const text of ['['.repeat(16_000), `${'? '.repeat(8_000)}a`, '['.repeat(200_000)]) {
      await expect(check(text)).rejects.toThrow('is nested too deeply or has too many values')
    }
  })
})
