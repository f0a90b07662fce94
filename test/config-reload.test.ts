/** A configuration that is written in place, piece by piece, while requests run: none of them meets half of it. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOpenForWriting } from '../src/config/edit/open-for-writing.ts'
import { loadConfig } from '../src/config/load/load.ts'
import { type ConfigWatch, watchConfig } from '../src/config/load/watch.ts'
import { createLog } from '../src/kit/log.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

let directory: string
let path: string
let clock: ManualClock
let gateway: TestGateway
let watched: ConfigWatch
let applied: number
let touched: () => void

const MODELS = Array.from({ length: 39 }, (_, index) => `sandbox/m${String(index).padStart(2, '0')}`)
/** A model a piece, each valid YAML with those before it; the first piece is a section of its own. */
const pieces = (models: string[], remark = '') => [
  `# ${remark}\nproviders:\n  acme: { base_url: "http://a.example" }\nmodels:\n`,
  ...models.map((id) => `  ${id}:\n    context_tokens: 8192\n`),
]

const load = (readFile?: () => string | undefined) =>
  loadConfig({
    environment: { GATEHOUSE_CONFIG: path, GATEHOUSE_DISCOVER: 'off' },
    cwd: directory,
    ...(readFile && { readFile }),
  })

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-reload-'))
  path = join(directory, 'gatehouse.yaml')
  writeFileSync(path, pieces(MODELS).join(''))
  clock = manualClock()
  const current = load()
  gateway = await startGateway({ models: current.models, providers: current.providers })
  applied = 0
  watched = watchConfig({
    path,
    current,
    load,
    async apply(next) {
      applied++
      await gateway.instance.reload(next)
    },
    log: createLog({ clock, level: 'silent', pretty: false, write: () => {} }),
    clock,
    isOpen: async () => false,
    watchDirectory(_, onEvent) {
      touched = onEvent
      return () => {}
    },
  })
})
afterEach(async () => {
  watched.close()
  await gateway[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

/** Time passes; requests for the first and the last model of the file run all the while. Their statuses. */
async function pass(ms: number, ids: string[]): Promise<number[]> {
  const statuses: number[] = []
  for (let left = ms; left > 0; left -= 100) {
    clock.advance(Math.min(left, 100))
    await new Promise((resolve) => setImmediate(resolve))
    if (left % 500 === 0 || left <= 100) {
      for (const id of ids) statuses.push((await gateway.call(`/v1/models/${id}`)).status)
    }
  }
  return statuses
}

const ENDS = [MODELS[0] ?? '', MODELS.at(-1) ?? '']

describe.each([
  ['with file events', true],
  ['seen by polling', false],
] as const)('a configuration in 40 pieces, %s', (_, has_events) => {
  test.each([100, 900, 2_500, 4_800])(
    'of which one comes every %d ms, is taken once, whole, and no request is 404',
    async (gap) => {
      const statuses: number[] = []
      const [first = '', ...rest] = pieces(
        [...MODELS.slice(0, -1).toReversed(), 'sandbox/new', ENDS[1] ?? ''],
        'rewritten',
      )
      const write = [() => writeFileSync(path, first), ...rest.map((piece) => () => appendFileSync(path, piece))]
      expect(write.length).toBeGreaterThanOrEqual(40)
      for (const each of write) {
        each()
        if (has_events) touched()
        statuses.push(...(await pass(gap, ENDS)))
      }
      statuses.push(...(await pass(8_000, ENDS)))
      expect(statuses.length).toBeGreaterThan(80)
      expect(statuses.filter((status) => status !== 200)).toEqual([])
      expect(applied).toBe(1)
      expect((await gateway.call('/v1/models/sandbox/new')).status).toBe(200)
    },
  )
})

test('an emptied and a truncated file change nothing for clients', async () => {
  writeFileSync(path, '')
  touched()
  expect(new Set(await pass(20_000, ENDS))).toEqual(new Set([200]))
  writeFileSync(path, pieces([])[0] ?? '')
  touched()
  expect(new Set(await pass(20_000, ENDS))).toEqual(new Set([200]))
  expect(applied).toBe(0)
})

describe('whether a file is open for writing', () => {
  test.skipIf(process.platform !== 'linux')('is known of this process, also by a link', async () => {
    const link = join(directory, 'link.yaml')
    symlinkSync(path, link)
    const reading = openSync(path, 'r')
    expect(await isOpenForWriting(path)).toBe(false)
    const writing = openSync(path, 'a')
    expect(await isOpenForWriting(path)).toBe(true)
    expect(await isOpenForWriting(link)).toBe(true)
    closeSync(writing)
    expect(await isOpenForWriting(path)).toBe(false)
    closeSync(reading)
  })

  test.each([
    ['0100000', false],
    ['0100001', true],
    ['0102002', true],
    ['nonsense', false],
  ])('follows from the flags of its descriptor: %s is %p', async (flags, is_open) => {
    const proc = join(directory, 'proc')
    for (const pid of ['7', '8']) mkdirSync(join(proc, pid, 'fd'), { recursive: true })
    mkdirSync(join(proc, '8', 'fdinfo'))
    symlinkSync('/dev/null', join(proc, '7', 'fd', '3'))
    symlinkSync(path, join(proc, '8', 'fd', '4'))
    writeFileSync(join(proc, '8', 'fdinfo', '4'), `pos:\t0\nflags:\t${flags}\n`)
    expect(await isOpenForWriting(path, proc)).toBe(is_open)
  })

  test('is unknown without the directory of descriptors', async () => {
    expect(await isOpenForWriting(path, join(directory, 'none'))).toBe(false)
  })
})
