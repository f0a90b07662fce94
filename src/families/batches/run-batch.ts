/** One run of a batch that this process has claimed: the next step, from what the store says of it. */
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import { clean, finish, recoverStarted } from './finish.ts'
import { type ClaimedBatch, saveProgress } from './parts.ts'
import { type Ran, runLines } from './run-lines.ts'
import { type Ordered, runOrders } from './run-orders.ts'
import { validate } from './validate.ts'

const REVOKED = { code: 'invalid_api_key', message: 'The token of this batch was revoked, or its project disabled.' }
const GONE = { code: 'file_not_found', message: 'The input of this batch was deleted before all of it was executed.' }
/** Before an ended batch is cleaned: nobody waits for that. */
const AT_ONCE = 0

/** The result is the time when the batch is due again, in unix milliseconds; undefined: nothing is left to do soon. */
export async function runBatch(claimed: ClaimedBatch): Promise<number | undefined> {
  const { batch, clock } = claimed
  const isOurs = await step(claimed)
  if (isOurs === 'lost') throw LEASE_LOST
  if (typeof isOurs === 'number') return isOurs
  return isOurs === 'ended' ? clock.now() + AT_ONCE : (batch.due_ms ?? undefined)
}

async function step(claimed: ClaimedBatch): Promise<'lost' | 'ended' | 'cleaned' | number> {
  const { batch } = claimed
  if (isEnded(batch.status)) {
    await clean(claimed)
    return 'cleaned'
  }
  if (batch.status === 'validating' || (batch.status === 'cancelling' && batch.progress.in_progress_at === undefined)) {
    const validated = await validate(claimed)
    if (validated !== 'ready') return validated === 'failed' ? 'ended' : 'lost'
  }
  if (!(await recoverStarted(claimed))) return 'lost'
  const ordered = await runOrders(claimed)
  if (ordered === 'lost') return 'lost'
  if (ordered !== 'done') return waitForOrders(claimed, ordered)
  if (batch.status === 'cancelling') return end(claimed, 'cancelled')
  if (batch.status === 'finalizing') return end(claimed, batch.progress.ending ?? 'completed')
  const ran = await runLines(claimed)
  return afterLines(claimed, ran)
}

/** The gateway calls the other lines meanwhile. */
async function waitForOrders(
  { batch, store, clock, ...rest }: ClaimedBatch,
  { until_ms, isOver }: Exclude<Ordered, string>,
): Promise<'lost' | number> {
  const ran = isOver ? 'finished' : await runLines({ ...rest, batch, store, clock })
  const other_ms = ran === 'finished' ? until_ms : typeof ran === 'object' ? ran.until_ms : clock.now()
  const due_ms = Math.min(until_ms, other_ms)
  return (await store.save(batch, { due_ms, release: true })) ? due_ms : 'lost'
}

const isEnded = (status: string) => ['failed', 'completed', 'cancelled', 'expired'].includes(status)

async function end(claimed: ClaimedBatch, ...[ending, reason]: Ending): Promise<'ended' | 'lost'> {
  if (await finish(claimed, ending, reason)) return 'ended'
  const { batch, store } = claimed
  const found = await store.find(batch.batch_id)
  // It was cancelled since its last line: all its results are there.
  const isCancelled = found?.fence === batch.fence && found.status === 'cancelling' && ending !== 'cancelled'
  return isCancelled && (await finish(claimed, 'cancelled', reason)) ? 'ended' : 'lost'
}
type Ending = [ending: 'completed' | 'expired' | 'cancelled', reason?: { code: string; message: string }]

async function afterLines(claimed: ClaimedBatch, ran: Ran): Promise<'lost' | 'ended' | number> {
  const { batch, store, clock } = claimed
  if (ran === 'finished') return end(claimed, 'completed')
  if (ran === 'expired') return end(claimed, 'expired')
  if (ran === 'stopped') return end(claimed, 'cancelled')
  if (ran === 'revoked') return end(claimed, 'cancelled', REVOKED)
  if (ran === 'gone') return end(claimed, 'cancelled', GONE)
  const pause = ran === 'closing' ? undefined : ran
  const due_ms = Math.min(pause?.until_ms ?? clock.now(), batch.expires_at * 1000)
  if (!(await saveProgress(claimed, { pause }))) return 'lost'
  return (await store.save(batch, { due_ms, release: true })) ? due_ms : 'lost'
}
