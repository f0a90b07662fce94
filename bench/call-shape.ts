/** Counts what one answer makes and executes in the gateway: objects, garbage, promises, source files and lines. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CallAnswer } from './one-call.ts'

export type CallShape = { objects: number; garbage: number; promises: number; files: number; lines: number }

/** Of two runs: what each further call executes. */
const CALLS = [10, 40] as const
const ROOT = join(import.meta.dir, '..')

/** `dir`: for temporary files. Throws where a call fails. */
export async function callShape(dir: string, answer: CallAnswer = 'whole'): Promise<CallShape> {
  const { stdout } = run(['bench/call-objects.ts'], {
    ANSWER: answer,
    BUN_JSC_useGC: '0',
    BUN_GC_TIMER_DISABLE: '1',
  })
  const counted = JSON.parse(stdout) as Pick<CallShape, 'objects' | 'garbage' | 'promises'>
  const [few, more] = CALLS.map((calls) => coverageOf({ calls, answer, dir: join(dir, `coverage-${answer}-${calls}`) }))
  let [files, lines] = [0, 0]
  for (const [file, counts] of more ?? []) {
    let executed = 0
    // A timer or a batch may add one execution by chance.
    for (const [line, count] of counts)
      if (count - (few?.get(file)?.get(line) ?? 0) >= CALLS[1] - CALLS[0] - 1) executed++
    if (executed > 0) files++
    if (executed > 0 && process.env.FILES) process.stderr.write(`${file} ${executed}\n`)
    lines += executed
  }
  return { ...counted, files, lines }
}

function run(args: string[], env: Record<string, string>) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
  })
  if (exitCode !== 0) throw new Error(`${args.join(' ')} failed: ${stdout}${stderr}`)
  if (process.env.TYPES) process.stderr.write(stderr)
  return { stdout: stdout.toString() }
}

/** File -> line -> how often it was executed, of the gateway's sources. */
function coverageOf({
  calls,
  answer,
  dir,
}: {
  calls: number
  answer: CallAnswer
  dir: string
}): Map<string, Map<number, number>> {
  const coverage = ['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${dir}`]
  run(['test', ...coverage, './bench/call-coverage.ts'], { ANSWER: answer, COVERED_CALLS: String(calls) })
  const files = new Map<string, Map<number, number>>()
  let counts = new Map<number, number>()
  for (const text of readFileSync(join(dir, 'lcov.info'), 'utf8').split('\n')) {
    if (text.startsWith('SF:')) {
      counts = new Map()
      if (/^SF:(src|packages)\//.test(text)) files.set(text.slice(3), counts)
    } else if (text.startsWith('DA:')) {
      const [line = 0, count = 0] = text.slice(3).split(',').map(Number)
      counts.set(line, count)
    }
  }
  return files
}
