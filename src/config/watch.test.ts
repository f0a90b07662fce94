import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../test/kit/clock.ts'
import type { Clock } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import type { Config } from './config.ts'
import { loadConfig } from './load.ts'
import { type ConfigWatch, watchConfig } from './watch.ts'

const POLL = 2000
const SETTLE = 100

let directory: string
let path: string
let clock: ManualClock
let lines: string
let applied: Config[]
let watched: ConfigWatch | undefined
/** What the faked watch of the directory reports to. */
let touched: () => void
let refusal: Error | undefined

const load = () => loadConfig({ environment: { GATEHOUSE_CONFIG: path }, cwd: directory })
const write = (text: string) => writeFileSync(path, text)

function keep(text: string): void {
  lines += text
}

function start(current = load()): ConfigWatch {
  const log = createLog({ clock, level: 'info', pretty: false, write: keep })
  const apply = async (next: Config) => {
    if (refusal) throw refusal
    applied.push(next)
  }
  const watchDirectory = (_: string, onEvent: () => void) => {
    touched = onEvent
    return () => {}
  }
  watched = watchConfig({ path, current, load, apply, log, clock, watchDirectory })
  return watched
}

/** All that was logged, as event and fields. */
function logged(): Record<string, unknown>[] {
  clock.advance(50)
  return lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Moves time, then lets the promises that it has started run to their end. */
async function settle(ms: number): Promise<void> {
  clock.advance(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-watch-'))
  path = join(directory, 'gatehouse.yaml')
  clock = manualClock()
  lines = ''
  applied = []
  refusal = undefined
  write('when_retired: refuse\n')
})
afterEach(() => {
  watched?.close()
  rmSync(directory, { recursive: true })
})

describe('a changed file', () => {
  test('is applied once it has come to rest, and the log says in one line what changed', async () => {
    start()
    write('when_retired: serve\nproviders: { acme: { base_url: "http://a.example" } }\n')
    touched()
    await settle(SETTLE - 1)
    touched()
    await settle(SETTLE - 1)
    expect(applied).toEqual([])
    await settle(1)
    expect(applied.map((config) => config.when_retired)).toEqual(['serve'])
    expect(logged().map(({ event, changed }) => [event, changed])).toEqual([
      ['configuration applied', '~when_retired, providers +acme'],
    ])
  })

  test('is seen by polling where no event tells of it', async () => {
    start()
    await settle(POLL)
    write('when_retired: serve\n')
    await settle(POLL - 1)
    expect(applied).toEqual([])
    await settle(1)
    expect(applied).toHaveLength(1)
    await settle(POLL)
    expect(applied).toHaveLength(1)
  })

  test('is seen when another file takes its place, as editors do', async () => {
    start()
    writeFileSync(`${path}.new`, 'when_retired: serve\n')
    renameSync(`${path}.new`, path)
    await settle(POLL)
    expect(applied.map((config) => config.when_retired)).toEqual(['serve'])
  })

  test('is seen when a link on the way to it is swapped, as mounted volumes do', async () => {
    rmSync(path)
    for (const [name, text] of [
      ['one', 'when_retired: refuse\n'],
      ['two', 'when_retired: redirect\n'],
    ] as const) {
      mkdirSync(join(directory, name))
      writeFileSync(join(directory, name, 'gatehouse.yaml'), text)
    }
    symlinkSync('one', join(directory, '..data'))
    symlinkSync('..data/gatehouse.yaml', path)
    start()
    await settle(POLL)
    symlinkSync('two', join(directory, '..next'))
    renameSync(join(directory, '..next'), join(directory, '..data'))
    await settle(POLL)
    expect(applied.map((config) => config.when_retired)).toEqual(['redirect'])
  })

  test('with the same meaning is not applied again', async () => {
    start()
    write('# a remark\nwhen_retired: refuse\n')
    await settle(POLL)
    expect(applied).toEqual([])
    expect(logged().map(({ event }) => event)).toEqual(['configuration unchanged'])
  })

  test('that did not exist at the start is taken up', async () => {
    rmSync(path)
    start(loadConfig({ environment: { GATEHOUSE_DISCOVER: 'off' }, cwd: join(directory, 'elsewhere') }))
    await settle(POLL)
    write('sandbox: false\n')
    await settle(POLL)
    expect(applied.map(({ sandbox, file }) => [sandbox, file])).toEqual([[false, path]])
  })
})

describe('the last good configuration stays', () => {
  test('when the file is wrong: every problem is logged, and a mended file is applied', async () => {
    start()
    write('when_retired: never\nserver:\n  port: many\n')
    await settle(POLL)
    expect(applied).toEqual([])
    expect(logged().map(({ event, problem, problems }) => [event, problem ?? problems])).toEqual([
      [
        'configuration problem',
        `${path}:1:15  when_retired: found "never" (string), must be one of "refuse", "serve", "redirect"`,
      ],
      ['configuration problem', `${path}:3:9  server.port: found "many" (string), must be an integer`],
      ['configuration not applied', 2],
    ])
    write('when_retired: serve\n')
    await settle(POLL)
    expect(applied.map((config) => config.when_retired)).toEqual(['serve'])
  })

  test('when its parts cannot be put in place; the next change is compared with what is in force', async () => {
    start()
    refusal = new Error('models.a/b: there is no provider "a"')
    write('sandbox: false\n')
    await settle(POLL)
    expect(applied).toEqual([])
    expect(lines).toContain('there is no provider')
    refusal = undefined
    write('sandbox: false\nwhen_retired: refuse\n')
    await settle(POLL)
    expect(applied).toHaveLength(1)
    expect(logged().at(-1)).toMatchObject({ event: 'configuration applied', changed: '~sandbox' })
  })

  test('when the file is gone, which is said once, and a reload by hand says it again', async () => {
    const { reload } = start()
    await settle(POLL)
    rmSync(path)
    await settle(POLL)
    await settle(POLL)
    expect(logged().map(({ event }) => event)).toEqual(['configuration file gone'])
    expect(await reload()).toBe(false)
    expect(logged()).toHaveLength(2)
    expect(applied).toEqual([])
  })
})

test('a reload by hand applies a change at once, and says so when there is none', async () => {
  const { reload } = start()
  expect(await reload()).toBe(true)
  expect(applied).toEqual([])
  write('sandbox: false\n')
  expect(await reload()).toBe(true)
  expect(applied).toHaveLength(1)
  write('sandbox: 7\n')
  expect(await reload()).toBe(false)
  expect(logged().map(({ event }) => event)).toEqual([
    'configuration unchanged',
    'configuration applied',
    'configuration problem',
    'configuration not applied',
  ])
})

test('what takes effect only at the next start is named; values are not logged', async () => {
  start()
  write(
    'server: { port: 9001, host: 10.1.2.3, keep_alive_seconds: 5 }\nproviders: { a: { base_url: "http://a.example", key: sesame-open } }\n',
  )
  await settle(POLL)
  expect(logged().map(({ event, changed, settings }) => [event, changed ?? settings])).toEqual([
    ['configuration applied', 'server ~host ~port ~keep_alive_seconds, providers +a'],
    ['restart needed', 'server.host, server.port'],
  ])
  expect(lines).not.toContain('sesame')
  expect(lines).not.toContain('9001')
})

test('after close nothing is read any more', async () => {
  start().close()
  write('sandbox: false\n')
  touched()
  await settle(POLL * 2)
  expect(applied).toEqual([])
})

test('the directory is really watched: a rename is seen without polling', async () => {
  const done = Promise.withResolvers<Config>()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  // Events come from the system; of time, only the settling passes, so polling can have no part in it.
  const eager: Clock = {
    now: clock.now,
    after(ms, work) {
      if (ms < POLL) setImmediate(work)
      return () => {}
    },
  }
  const watch = watchConfig({
    path,
    current: load(),
    load,
    apply: async (next) => done.resolve(next),
    log,
    clock: eager,
  })
  writeFileSync(`${path}.new`, 'when_retired: redirect\n')
  renameSync(`${path}.new`, path)
  expect((await done.promise).when_retired).toBe('redirect')
  watch.close()
})
