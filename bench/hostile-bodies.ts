/** `npm run bench:bodies`: how long one hostile body keeps the process from all other work, by the MiB of the body. */
import { DEFAULT_SERVER } from '../src/config/config.ts'
import { startGateway } from '../test/kit/gateway.ts'
import { chatCases, type HostileCase, otherCases } from './hostile-cases.ts'

const MIB = 1024 * 1024
/** The promise: no body keeps the process busy for longer, by the MiB. */
const ALLOWED_MS_A_MIB = 100
/** A body below it is not measured by its size: what any request costs would weigh more. */
const LEAST_MIB = 1
const REPEATS = 3
/** Just below the bounds on objects and on values, in the middle, and the largest body that a family takes. */
const SIZES = [0.3, 1, 4, 31]

const print = (text: string) => void process.stdout.write(`${text}\n`)

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? undefined : process.argv[at + 1]
}
const only = option('only')
const sizes = option('mib')?.split(',').map(Number) ?? SIZES

/** Answers at once, without reading: what is measured is the gateway. */
const vendor = Bun.serve({ port: 0, fetch: () => Response.json({ error: { message: 'no' } }, { status: 400 }) })
const base_url = `http://127.0.0.1:${vendor.port}/v1`
const KINDS = ['chatcompat', 'messages-compat', 'contentgen-compat', 'responses-compat'] as const
const providers = Object.fromEntries(
  KINDS.map((kind) => [kind, { kind, base_url, key: 'sk-bench', timeouts: { connect_seconds: 5 } }]),
)
const models = {
  ...Object.fromEntries(KINDS.map((kind) => [`${kind}/general`, {}])),
  'chatcompat/embedding': { families: ['embeddings'] },
  'chatcompat/rerank': { families: ['rerank'] },
}
const quiet = await startGateway({
  providers,
  models,
  server: { ...DEFAULT_SERVER, max_body_bytes: 32 * MIB },
} as never)

type Measured = HostileCase & { mib: number; status: number; frozen_ms: number; parse_ms: number }

/** The longest that nothing else could run while the request was under way. */
async function measure(hostile: HostileCase): Promise<Measured> {
  const text = hostile.body()
  const bytes = Buffer.from(text)
  Bun.gc(true)
  let frozen_ms = 0
  let isOver = false
  let last = clocks()
  /** What other processes took of the time is not the gateway's. */
  const look = () => {
    const now = clocks()
    frozen_ms = Math.max(frozen_ms, Math.min(now.wall_ms - last.wall_ms, now.processor_ms - last.processor_ms))
    last = now
  }
  const tick = () => {
    look()
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  const headers = {
    authorization: `Bearer ${quiet.token}`,
    'content-type': 'application/json',
    'content-length': String(bytes.length),
  }
  const request = new Request(`http://gatehouse.test${hostile.path}`, { method: 'POST', headers, body: bytes })
  const response = await quiet.instance.fetch(request)
  await response.text().catch(() => '')
  isOver = true
  look()
  quiet.logged()
  // Of a body that is refused unparsed, parsing takes up to 8 s, which was most of the time of this program.
  const parse_ms = response.status === 413 ? Number.NaN : timeToParse(text)
  return { ...hostile, mib: bytes.length / MIB, status: response.status, frozen_ms, parse_ms }
}

function timeToParse(text: string): number {
  const start = performance.now()
  try {
    JSON.parse(text)
  } catch {}
  return performance.now() - start
}

function clocks(): { wall_ms: number; processor_ms: number } {
  const { user, system } = process.cpuUsage()
  return { wall_ms: performance.now(), processor_ms: (user + system) / 1000 }
}

const perMib = ({ frozen_ms, mib }: Measured): number => frozen_ms / Math.max(mib, LEAST_MIB)

const results: Measured[] = []
for (const mib of sizes) {
  const bytes = Math.floor(mib * MIB)
  const cases = [...['sandbox', ...KINDS].flatMap((name) => chatCases(`${name}/general`, bytes)), ...otherCases(bytes)]
  for (const one of cases) {
    if (only && !`${one.path} ${one.name}`.includes(only)) continue
    let result = await measure(one)
    // A pause of the machine is not the gateway's: only what happens each time counts.
    for (let again = 0; again < REPEATS && perMib(result) > ALLOWED_MS_A_MIB && result.frozen_ms < 5_000; again++) {
      const next = await measure(one)
      if (next.frozen_ms < result.frozen_ms) result = next
    }
    results.push(result)
    if (perMib(result) > ALLOWED_MS_A_MIB || process.argv.includes('--all')) print(lineOf(result))
  }
}
const worst = results.toSorted((one, other) => perMib(other) - perMib(one))
print(`\n${results.length} bodies; the worst:`)
for (const result of worst.slice(0, 15)) print(lineOf(result))
await quiet[Symbol.asyncDispose]()
await vendor.stop(true)
const tooLong = results.filter((result) => perMib(result) > ALLOWED_MS_A_MIB)
print(
  tooLong.length === 0
    ? `\nAll below ${ALLOWED_MS_A_MIB} ms a MiB.`
    : `\n${tooLong.length} ABOVE ${ALLOWED_MS_A_MIB} ms a MiB.`,
)
process.exit(tooLong.length === 0 ? 0 : 1)

function lineOf(result: Measured): string {
  const { path, name, mib, status, frozen_ms, parse_ms } = result
  const figures = `${perMib(result).toFixed(0)} ms/MiB, ${frozen_ms.toFixed(0)} ms in all, JSON.parse ${Number.isNaN(parse_ms) ? 'not run' : `${parse_ms.toFixed(0)} ms`}`
  return `${status} ${mib.toFixed(1)} MiB ${path}  ${name.slice(0, 100)}: ${figures}`
}
