/**
 * Prints, as JSON, how many objects, promises and bytes of the JavaScript heap one whole answer takes. It must run without a
 * garbage collector (`BUN_JSC_useGC=0`), so that all that was made can be counted.
 */
import { heapStats } from 'bun:jsc'
import { newRequest, SETTLE_MILLISECONDS, startOneCall } from './one-call.ts'

const CALLS = 100
const READINGS = 5
/** Compilers and caches of the runtime are done after so many. */
const WARM_CALLS = 3_000

type Reading = { objects: number; garbage: number; promises: number }

/** What the harness itself makes of a call: its request, and the response that it reads. */
async function bare(): Promise<void> {
  newRequest().headers.get('x')
  await new Response('{}').text()
}

async function reading(work: () => Promise<void>): Promise<Reading> {
  const before = heapStats()
  for (let made = 0; made < CALLS; made++) await work()
  await Bun.sleep(SETTLE_MILLISECONDS)
  const after = heapStats()
  const countOf = (type: string) => ((after.objectTypeCounts[type] ?? 0) - (before.objectTypeCounts[type] ?? 0)) / CALLS
  const types = Object.keys(after.objectTypeCounts).sort((a, b) => countOf(b) - countOf(a))
  if (process.env.TYPES) {
    const most = types.slice(0, 30).map((type) => `${type} ${countOf(type).toFixed(1)}`)
    process.stderr.write(`${most.join(', ')}\n`)
  }
  const objects = types.reduce((sum, type) => sum + countOf(type), 0)
  return { objects, garbage: (after.heapCapacity - before.heapCapacity) / CALLS, promises: countOf('Promise') }
}

/** The median of each figure. */
async function median(work: () => Promise<void>): Promise<Reading> {
  for (let made = 0; made < WARM_CALLS; made++) await work()
  const readings: Reading[] = []
  for (let read = 0; read < READINGS; read++) readings.push(await reading(work))
  const middle = (figure: keyof Reading) => readings.map((one) => one[figure]).sort((a, b) => a - b)[READINGS >> 1] ?? 0
  return { objects: middle('objects'), garbage: middle('garbage'), promises: middle('promises') }
}

const call = await startOneCall()
const harness = await median(bare)
const whole = await median(call)
const objects = whole.objects - harness.objects
process.stdout.write(
  `${JSON.stringify({ objects, garbage: whole.garbage - harness.garbage, promises: whole.promises - harness.promises })}\n`,
)
process.exit(0)
