/**
 * `npm test`: every test file, in one process. It says beforehand how long that takes, and how far it is. With
 * arguments it is `bun test` with these.
 */
import { join } from 'node:path'
import { allTests } from './fast-tests.ts'

const ROOT = join(import.meta.dir, '..')
/** On two cores. */
const MINUTES = 25
const FILES_A_LINE = 25
/** The line with which the test runner begins a file. */
const FILE = /^\S+\.test\.ts:$/

export async function runAll(args: string[], say: (text: string) => void): Promise<number> {
  const files = allTests().length
  const isWhole = args.length === 0
  if (isWhole)
    say(`${files} test files, some ${MINUTES} minutes on two cores; npm run test:fast leaves out the slow ones.\n\n`)
  const child = Bun.spawn([process.execPath, 'test', '--timeout', '30000', ...args], {
    cwd: ROOT,
    // A pipe takes the colours away.
    env: { ...process.env, ...(process.stderr.isTTY && { FORCE_COLOR: '1' }) },
    stdin: 'inherit',
    stdout: 'inherit',
    stderr: isWhole ? 'pipe' : 'inherit',
  })
  if (child.stderr) await follow(child.stderr, { files, say })
  return child.exited
}

/** Passes the text on, with a line of progress after every some files. */
export async function follow(
  stream: AsyncIterable<Uint8Array>,
  { files, say }: { files: number; say: (text: string) => void },
): Promise<void> {
  const start = performance.now()
  const decoder = new TextDecoder()
  let started = 0
  let rest = ''
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (FILE.test(Bun.stripANSI(line)) && ++started % FILES_A_LINE === 0)
        say(`[${started} of ${files} files, ${Math.round((performance.now() - start) / 60_000)} min]\n`)
      say(`${line}\n`)
    }
  }
  say(rest)
}

if (import.meta.main) process.exit(await runAll(process.argv.slice(2), (text) => process.stderr.write(text)))
