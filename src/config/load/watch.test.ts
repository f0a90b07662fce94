import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../../test/kit/clock.ts'
import type { Clock } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import type { Config } from '../config.ts'
import { loadConfig } from './load.ts'
import { createSecretFiles } from './secret-files.ts'
import { type ConfigWatch, watchConfig } from './watch.ts'

const POLL = 2000
const SETTLE = 100
const QUIET = 1_000
const LONG_QUIET = 5_000
/** Seen by polling, and quiet for as long as any file has to be. */
const TAKEN = POLL + LONG_QUIET

let directory: string
let path: string
let clock: ManualClock
let lines: string
let applied: Config[]
let watched: ConfigWatch | undefined
/** What the faked watch of the directory reports to. */
let touched: () => void
let refusal: Error | undefined
/** Whether a process has the file open for writing. */
let is_open: boolean

const secrets = createSecretFiles()
const load = (readFile?: () => string | undefined) => {
  secrets.begin()
  const environment = { GATEHOUSE_CONFIG: path }
  return loadConfig({ environment, cwd: directory, readSecret: secrets.read, ...(readFile && { readFile }) })
}
/** As an atomic replacement: the last write to the new file lies before the rename. */
function replace(text: string): void {
  writeFileSync(`${path}.new`, text)
  utimesSync(`${path}.new`, 1, 1)
  renameSync(`${path}.new`, path)
}
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
  watched = watchConfig({
    path,
    current,
    load,
    apply,
    secrets,
    log,
    clock,
    watchDirectory,
    isOpen: async () => is_open,
  })
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
  for (let left = ms; left > 0; left -= PACE) {
    clock.advance(Math.min(left, PACE))
    await new Promise((resolve) => setImmediate(resolve))
  }
}
const PACE = 50

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-watch-'))
  path = join(directory, 'gatehouse.yaml')
  clock = manualClock()
  lines = ''
  applied = []
  refusal = undefined
  is_open = false
  write('when_retired: refuse\n')
})
afterEach(() => {
  watched?.close()
  rmSync(directory, { recursive: true })
})

describe('a changed file', () => {
  test('is applied when it is quiet, and one log line describes the change', async () => {
    start()
    write('when_retired: serve\nproviders: { acme: { base_url: "http://a.example" } }\n')
    touched()
    await settle(SETTLE + QUIET - 50)
    expect(applied).toEqual([])
    await settle(50)
    expect(applied.map((config) => config.when_retired)).toEqual(['serve'])
    expect(logged().map(({ event, changed }) => [event, changed])).toEqual([
      ['configuration applied', '~when_retired, providers +acme'],
    ])
  })

  test('is applied despite constant events in its directory', async () => {
    start()
    write('when_retired: serve\nsandbox: true\n')
    for (let event = 0; event < 30; event++) {
      touched()
      await settle(50)
    }
    expect(applied).toHaveLength(1)
  })

  test('is found by polling when there are no events', async () => {
    start()
    await settle(POLL)
    write('when_retired: serve\n\n')
    await settle(POLL + QUIET - 50)
    expect(applied).toEqual([])
    await settle(50)
    expect(applied).toHaveLength(1)
    await settle(TAKEN)
    expect(applied).toHaveLength(1)
  })

  test.each([
    ['is taken at once when another file takes its place by a rename, whatever it lacks', false],
    ['is taken at once by a rename also when it is open elsewhere', true],
  ])('%s', async (_, open) => {
    start()
    is_open = open
    replace('x-a: 1\n')
    touched()
    await settle(SETTLE - 50)
    expect(applied).toEqual([])
    await settle(50)
    expect(logged().map(({ event }) => event)).toEqual(['configuration problem', 'configuration not applied'])
    replace('sandbox: false\n')
    touched()
    await settle(SETTLE)
    expect(applied.map(({ sandbox }) => sandbox)).toEqual([false])
  })

  test('is not applied at once when a new file is being written in its place', async () => {
    start()
    rmSync(path)
    write('sandbox: false\n')
    touched()
    await settle(SETTLE + LONG_QUIET - 50)
    expect(applied).toEqual([])
    await settle(50)
    expect(applied).toHaveLength(1)
  })

  test('is found when a link in its path is swapped, as mounted volumes do', async () => {
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
    await settle(TAKEN)
    expect(applied.map((config) => config.when_retired)).toEqual(['redirect'])
  })

  test('is not applied again when its settings are the same', async () => {
    start()
    write('# a remark\nwhen_retired: refuse\n')
    await settle(TAKEN)
    expect(applied).toEqual([])
    expect(logged().map(({ event }) => event)).toEqual(['configuration unchanged'])
  })

  test('is applied when it did not exist at start', async () => {
    rmSync(path)
    start(loadConfig({ environment: { GATEHOUSE_DISCOVER: 'off' }, cwd: join(directory, 'elsewhere') }))
    await settle(POLL)
    write('sandbox: false\n')
    await settle(TAKEN)
    expect(applied.map(({ sandbox, file }) => [sandbox, file])).toEqual([[false, path]])
  })
})

describe('a file that is written in place', () => {
  const PROVIDERS = 'providers:\n  acme: { base_url: "http://a.example" }\n  zenith: { base_url: "http://z.example" }\n'
  const MODELS = 'models:\n  acme/a: {}\n  acme/b: {}\n'
  const both = () => {
    write(`${PROVIDERS}${MODELS}`)
    start()
  }
  const events = () => logged().map(({ event, why }) => [event, why].filter(Boolean).join(': '))

  test('is applied a second after its last change when nothing is missing', async () => {
    both()
    for (let piece = 0; piece < 6; piece++) {
      appendFileSync(path, `  acme/c${piece}: {}\n`)
      touched()
      await settle(QUIET)
      expect(applied).toEqual([])
    }
    await settle(SETTLE)
    expect(applied.map(({ models }) => Object.keys(models).length)).toEqual([8])
  })

  test('is applied five seconds after its last change when a model is missing, and the wait is logged', async () => {
    both()
    write(`${PROVIDERS}models:\n  acme/a: {}\n# ${'-'.repeat(80)}\n`)
    touched()
    await settle(SETTLE + LONG_QUIET - 50)
    expect(applied).toEqual([])
    expect(events()).toEqual(['configuration change waits: it lacks settings that are in force'])
    await settle(50)
    expect(applied.map(({ models }) => Object.keys(models))).toEqual([['acme/a']])
  })

  test('is applied five seconds after its last change when it is shorter', async () => {
    write('when_retired: serve\nserver: { port: 9000 }\n')
    start()
    write('when_retired: refuse\n')
    touched()
    await settle(SETTLE + LONG_QUIET - 50)
    expect(applied).toEqual([])
    await settle(50)
    expect(applied).toHaveLength(1)
  })

  test('waits while a process has it open for writing, at most a minute', async () => {
    both()
    is_open = true
    appendFileSync(path, '  acme/c: {}\n')
    touched()
    await settle(50_000)
    expect(applied).toEqual([])
    expect(events()).toEqual(['configuration change waits: it is open for writing'])
    is_open = false
    await settle(QUIET)
    expect(applied).toHaveLength(1)
    is_open = true
    appendFileSync(path, '  acme/d: {}\n')
    touched()
    await settle(SETTLE + 60_000 - 50)
    expect(applied).toHaveLength(1)
    await settle(50)
    expect(applied).toHaveLength(2)
  })

  test.each([
    ['empty', ''],
    ['blank', ' \n\t\n'],
    ['comments only', '# models\n---\n# providers: {}\n'],
    ['cut after its first section', PROVIDERS],
    ['an empty table', '{}\n'],
    ['without its providers', 'models:\n  sandbox/a: {}\n'],
  ])('is not applied automatically when it is %s; SIGHUP applies it', async (_, text) => {
    both()
    write(text)
    touched()
    await settle(600_000)
    expect(applied).toEqual([])
    const last = logged().at(-1)
    expect(last).toMatchObject({ event: 'configuration not applied', kept: 'the last good one' })
    expect(last?.force).toBe('send SIGHUP to apply it as it is')
    expect(lines.match(/configuration not applied/g)).toHaveLength(1)
    expect(await watched?.reload()).toBe(true)
    expect(applied).toHaveLength(1)
  })

  test('is applied when it is complete after it was emptied and rewritten', async () => {
    both()
    write('')
    touched()
    await settle(8_000)
    write(`${PROVIDERS}${MODELS}  acme/c: {}\n`)
    touched()
    await settle(SETTLE + QUIET)
    expect(applied.map(({ models }) => Object.keys(models).length)).toEqual([3])
  })

  test('does not turn off discovery when it appears empty', async () => {
    rmSync(path)
    start(loadConfig({ environment: {}, cwd: join(directory, 'elsewhere') }))
    write('# nothing yet\n')
    await settle(600_000)
    expect(applied).toEqual([])
    write('sandbox: true\n')
    await settle(POLL + QUIET)
    expect(applied).toEqual([])
    await settle(LONG_QUIET)
    expect(applied.map(({ discover }) => discover)).toEqual([false])
  })

  test('is loaded as inspected, not as changed since', async () => {
    both()
    const seen: string[] = []
    watched?.close()
    const log = createLog({ clock, level: 'silent', pretty: false, write: keep })
    watched = watchConfig({
      path,
      current: load(),
      load(readFile) {
        seen.push(readFile() ?? '')
        write('')
        return load(readFile)
      },
      apply: async (next) => void applied.push(next),
      log,
      clock,
      watchDirectory: () => () => {},
    })
    const text = `${PROVIDERS}${MODELS}  acme/c: {}\n`
    replace(text)
    await settle(POLL)
    expect(seen).toEqual([text])
    expect(applied.map(({ models }) => Object.keys(models).length)).toEqual([3])
  })
})

describe('a secret file', () => {
  const keys = () => applied.map(({ providers }) => providers.acme?.key)
  const secret = () => join(directory, 'acme.key')

  beforeEach(() => {
    writeFileSync(secret(), 'first\n')
    write('providers: { acme: { base_url: "http://a.example", key_file: acme.key } }\n')
  })

  test('that changes is read again, and one log line names its provider', async () => {
    start()
    writeFileSync(secret(), 'second\n')
    await settle(POLL + QUIET - 50)
    expect(keys()).toEqual([])
    await settle(50)
    expect(keys()).toEqual(['second'])
    expect(logged().map(({ event, changed }) => [event, changed])).toEqual([
      ['configuration applied', 'providers ~acme'],
    ])
    expect(lines).not.toContain('second')
    await settle(3 * POLL)
    expect(keys()).toEqual(['second'])
  })

  test('that keeps changing is read once it is quiet', async () => {
    start()
    writeFileSync(secret(), 'sec\n')
    await settle(POLL + QUIET - 50)
    writeFileSync(secret(), 'second\n')
    await settle(QUIET)
    expect(keys()).toEqual([])
    await settle(50)
    expect(keys()).toEqual(['second'])
  })

  test('that is removed or empty leaves the key in force, until it is there again', async () => {
    start()
    rmSync(secret())
    await settle(POLL + QUIET)
    writeFileSync(secret(), '')
    await settle(POLL + QUIET)
    expect(keys()).toEqual([])
    expect(logged().filter(({ event }) => event === 'configuration problem')).toHaveLength(2)
    writeFileSync(secret(), 'second\n')
    await settle(POLL + QUIET)
    expect(keys()).toEqual(['second'])
  })

  test('is found when the directory that it is in is swapped by a link, as mounted secrets are', async () => {
    for (const [name, key] of Object.entries({ one: 'first', two: 'second' })) {
      mkdirSync(join(directory, name))
      writeFileSync(join(directory, name, 'key'), key)
    }
    symlinkSync('one', join(directory, 'data'))
    write('providers: { acme: { base_url: "http://a.example", key: "${file:data/key}" } }\n')
    start()
    symlinkSync('two', join(directory, 'data.new'))
    renameSync(join(directory, 'data.new'), join(directory, 'data'))
    await settle(POLL + QUIET)
    expect(keys()).toEqual(['second'])
  })
})

describe('the last good configuration', () => {
  test('stays when the file is invalid; every problem is logged, and a corrected file is applied', async () => {
    start()
    write('when_retired: never\nserver:\n  port: many\n')
    await settle(TAKEN)
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
    await settle(TAKEN)
    expect(applied.map((config) => config.when_retired)).toEqual(['serve'])
  })

  test('stays when applying fails; the next change is compared with what is in force', async () => {
    start()
    refusal = new Error('models.a/b: there is not a provider "a"')
    write('sandbox: false\n')
    await settle(TAKEN)
    expect(applied).toEqual([])
    expect(lines).toContain('there is not a provider')
    refusal = undefined
    write('sandbox: false\nwhen_retired: refuse\n')
    await settle(TAKEN)
    expect(applied).toHaveLength(1)
    expect(logged().at(-1)).toMatchObject({ event: 'configuration applied', changed: '~sandbox' })
  })

  test('stays when the file is missing, which is logged once and again on a manual reload', async () => {
    const { reload } = start()
    await settle(POLL)
    rmSync(path)
    await settle(POLL)
    await settle(TAKEN)
    expect(logged().map(({ event }) => event)).toEqual(['configuration file missing'])
    expect(await reload()).toBe(false)
    expect(logged()).toHaveLength(2)
    expect(applied).toEqual([])
  })
})

test('a manual reload applies a change at once, and logs when there is none', async () => {
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

test('logs the names of settings that need a restart, without values', async () => {
  start()
  write(
    'server: { port: 9001, host: 10.1.2.3, keep_alive_seconds: 5 }\nproviders: { a: { base_url: "http://a.example", key: sesame-open } }\n',
  )
  await settle(TAKEN)
  expect(logged().map(({ event, changed, settings }) => [event, changed ?? settings])).toEqual([
    ['configuration applied', 'server ~host ~port ~keep_alive_seconds, providers +a'],
    ['restart needed', 'server.host, server.port'],
  ])
  expect(lines).not.toContain('sesame')
  expect(lines).not.toContain('9001')
})

test('reads nothing after close', async () => {
  start().close()
  write('sandbox: false\n')
  touched()
  await settle(POLL * 2)
  expect(applied).toEqual([])
})

test('detects a rename by file events, without polling', async () => {
  const done = Promise.withResolvers<Config>()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  // Events come from the system; of time, only the settling passes, so polling can have no part in it.
  const eager: Clock = {
    ...clock,
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
  replace('when_retired: redirect\n')
  expect((await done.promise).when_retired).toBe('redirect')
  watch.close()
})
