/**
 * `npm test`: every test file. It says beforehand how long that takes, and how far it is. On two cores or more, the files
 * that mostly wait for processes run beside the others; who is done first takes more of those of the console. With arguments it is `bun test` with these.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { allTests } from './fast-tests.ts'

const ROOT = join(import.meta.dir, '..')
/** On two cores. */
const MINUTES = 40
const FILES_A_LINE = 25
/** The line with which the test runner begins a file. */
const FILE = /^\S+\.test\.ts:$/

/** They start processes, kill and restart them, and use a fraction of a core. */
export const WAITING_TESTS = [
  'test/batches-kills.test.ts',
  'test/cell.test.ts',
  'test/coding-agents.test.ts',
  'test/crash-3d.test.ts',
  'test/crash-orders.test.ts',
  'test/crash-resume.test.ts',
  'test/crash.test.ts',
  'test/cut-off.test.ts',
  'test/ledger-crash.test.ts',
  'test/ledger-kills.test.ts',
  'test/mcp-agents.test.ts',
  'test/python-sdks.test.ts',
  'test/responses-crash.test.ts',
  'test/rivalry.test.ts',
  'test/rolling-restart.test.ts',
  'test/rolling-upgrade.test.ts',
  'test/upgrade-under-load.test.ts',
  'test/workers.test.ts',
]

/** They run on a machine of any speed, beside anything. */
const CONSOLE = /^test\/console\//
/** Each runner starts one Chromium, and loads what it tests. */
const FILES_A_RUNNER = 4
/** What a runner has written before its end is read within it. */
const REST_MILLISECONDS = 5_000

type Say = (text: string) => void
const spawn = <Err extends 'inherit' | 'pipe'>(args: string[], stderr: Err) =>
  Bun.spawn([process.execPath, 'test', '--timeout', '120000', ...args], {
    cwd: ROOT,
    // A pipe takes the colours away.
    env: { ...process.env, ...(process.stderr.isTTY && { FORCE_COLOR: '1' }) },
    stdin: 'inherit',
    stdout: 'inherit',
    stderr,
  })

export async function runAll(args: string[], say: Say): Promise<number> {
  if (args.length > 0) return spawn(args, 'inherit').exited
  const files = allTests()
  say(
    `${files.length} test files, some ${MINUTES} minutes on two cores; npm run test:fast leaves out the slow ones.\n\n`,
  )
  const isWaiting = (path: string) => WAITING_TESTS.includes(path)
  const isBeside = availableParallelism() >= 2
  const others = files.filter((path) => !isWaiting(path) && !CONSOLE.test(path))
  const lanes = isBeside ? [others, files.filter(isWaiting)] : [files]
  const shared = isBeside ? inParts(files.filter((path) => CONSOLE.test(path))) : []
  const report = createReport({ files: files.length, say })
  const codes: number[] = []
  async function runLane(group: string[]): Promise<void> {
    for (let own: string[] | undefined = group; own; own = shared.shift()) {
      // "./" names a file; without it a path would be a filter for every path that contains it.
      const child = spawn(
        own.map((path) => `./${path}`),
        'pipe',
      )
      codes.push(await followed(child, report.follow))
    }
  }
  await Promise.all(lanes.map(runLane))
  // A runner that ends with 0 before its sum was ended by a test.
  const isWhole = report.end()
  return Math.max(...codes, isWhole ? 0 : 1)
}

type Child = { stderr: ReadableStream<Uint8Array>; exited: Promise<number> }

/** The status of a runner. A process that a test has left behind holds its pipe: what comes after its end is not waited for. */
export async function followed(
  { stderr, exited }: Child,
  follow: (lines: AsyncIterable<Uint8Array>) => Promise<void>,
  rest_ms = REST_MILLISECONDS,
): Promise<number> {
  const reader = stderr.getReader()
  const isFollowed = follow(chunksOf(reader))
  const code = await exited
  const timer = setTimeout(() => void reader.cancel(), rest_ms)
  await isFollowed
  clearTimeout(timer)
  return code
}

async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value
}

const inParts = (paths: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(paths.length / FILES_A_RUNNER) }, (_, at) =>
    paths.slice(at * FILES_A_RUNNER, (at + 1) * FILES_A_RUNNER),
  )

/** What the runners say, whole files at a time, with a line of progress after every some files, and the sum at the end. */
export function createReport({ files, say }: { files: number; say: Say }) {
  const start = performance.now()
  const sums = new Map<string, number>()
  let started = 0
  let runners = 0

  function count(line: string): void {
    const [, number, name = ''] = /^ *(\d+) (pass|skip|fail|expect\(\) calls)$/.exec(line) ?? []
    if (number !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(number))
    const [, tests, of] = /^Ran (\d+) tests? across (\d+) files?\./.exec(line) ?? []
    if (tests === undefined) return
    sums.set('tests', (sums.get('tests') ?? 0) + Number(tests))
    sums.set('files', (sums.get('files') ?? 0) + Number(of))
    runners--
  }

  return {
    async follow(stream: AsyncIterable<Uint8Array>): Promise<void> {
      runners++
      const decoder = new TextDecoder()
      let rest = ''
      let block = ''
      for await (const bytes of stream) {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          const plain = Bun.stripANSI(line)
          count(plain)
          if (FILE.test(plain)) {
            say(block)
            block = ''
            if (++started % FILES_A_LINE === 0)
              say(`[${started} of ${files} files, ${Math.round((performance.now() - start) / 60_000)} min]\n`)
          }
          block += `${line}\n`
        }
      }
      count(Bun.stripANSI(rest))
      say(block + rest)
    },
    /** Says the sum in the form of a runner, and whether there is one: each runner has come to its end. */
    end(): boolean {
      if (runners > 0) return false
      const seconds = ((performance.now() - start) / 1000).toFixed(2)
      const of = (name: string) => sums.get(name) ?? 0
      const counts = ['pass', 'skip', 'fail', 'expect() calls'].map((name) => ` ${of(name)} ${name}\n`).join('')
      say(`\n\n${counts}Ran ${of('tests')} tests across ${of('files')} files. [${seconds}s]\n`)
      return true
    },
  }
}

if (import.meta.main) process.exit(await runAll(process.argv.slice(2), (text) => process.stderr.write(text)))
