/** Runs a batch that this process has claimed: the next step, from what the store says of it, and the last ones, which end it. */
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import { linesOf } from '../../kit/json-lines.ts'
import { GatewayError } from '../../spec/error.ts'
import type { BatchProgress, NewLine, ResultKind } from '../../store/batches/batch-store.ts'
import { UNKNOWN, uncalledResult } from './call-line.ts'
import { createLineCheck, MOST_LINE_BYTES } from './check-lines.ts'
import {
  type ClaimedBatch,
  endingOf,
  fail,
  inputKeyOf,
  inputStream,
  partsStream,
  removeParts,
  saveProgress,
  secondsOf,
  storeParts,
} from './parts.ts'
import { type Ran, runLines } from './run-lines.ts'
import { type Ordered, runOrders } from './run-orders.ts'

export const ENDED: readonly string[] = ['completed', 'failed', 'cancelled', 'expired']
const REVOKED = { code: 'invalid_api_key', message: 'The token of this batch was revoked, or its project disabled.' }
const GONE = { code: 'file_not_found', message: 'The input of this batch was deleted before all of it was executed.' }

/** The result is the time when the batch is due again, in unix milliseconds; undefined: nothing is left to do soon. */
export async function runBatch(claimed: ClaimedBatch): Promise<number | undefined> {
  const { batch, clock } = claimed
  const done = await step(claimed)
  if (done === 'lost') throw LEASE_LOST
  if (typeof done === 'number') return done
  return done === 'ended' ? clock.now() : (batch.due_ms ?? undefined)
}

async function step(claimed: ClaimedBatch): Promise<'lost' | 'ended' | 'cleaned' | number> {
  const { batch } = claimed
  if (ENDED.includes(batch.status)) {
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
  if (!(await closeUnknown(claimed))) return 'lost'
  const ran = await runLines(claimed)
  return afterLines(claimed, ran)
}

/** The gateway calls the other lines meanwhile. */
async function waitForOrders(
  claimed: ClaimedBatch,
  { until_ms, isOver }: Exclude<Ordered, string>,
): Promise<'lost' | number> {
  const { batch, store, clock } = claimed
  if (!isOver && !(await closeUnknown(claimed))) return 'lost'
  const ran = isOver ? 'finished' : await runLines(claimed)
  const other_ms = ran === 'finished' ? until_ms : typeof ran === 'object' ? ran.until_ms : clock.now()
  const due_ms = Math.min(until_ms, other_ms)
  return (await store.save(batch, { due_ms, release: true })) ? due_ms : 'lost'
}

type Ending = NonNullable<BatchProgress['ending']>

async function end(claimed: ClaimedBatch, ending: Ending, reason?: BatchProgress['reason']): Promise<'ended' | 'lost'> {
  if (await finish(claimed, ending, reason)) return 'ended'
  const { batch, store } = claimed
  const found = await store.find(batch.batch_id)
  // It was cancelled since its last line: all its results are there.
  const isCancelled = found?.fence === batch.fence && found.status === 'cancelling' && ending !== 'cancelled'
  return isCancelled && (await finish(claimed, 'cancelled', reason)) ? 'ended' : 'lost'
}

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

const LINES_PER_ADD = 1_000
const LINES_PER_WRITE = 200
const LINES_PER_DELETE = 5_000
const DAY_MILLISECONDS = 86_400_000

/** Why a line has no response, by how its batch ended; the codes are those of OpenAI. */
const REASONS = {
  completed: { outcome: 'errored', code: 'internal_error', message: 'This request was not executed.' },
  cancelled: {
    outcome: 'canceled',
    code: 'batch_cancelled',
    message: 'This request was not executed because the batch was cancelled.',
  },
  expired: {
    outcome: 'expired',
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
} as const

/** Lines whose process is gone wait again; where they may not be called again, they end. False: the claim is lost. */
async function recoverStarted(claimed: ClaimedBatch): Promise<boolean> {
  const { batch, store, clock } = claimed
  const started = await store.started(batch.batch_id)
  if (started.length === 0) return true
  const isOver = batch.status !== 'in_progress' || clock.now() >= batch.expires_at * 1000
  if (!isOver && !batch.request.exactly_once) return store.callAgain(batch)
  return store.close(
    batch,
    started.map((line) => ({ line: line.line, result: uncalledResult(batch, line, UNKNOWN) })),
  )
}

/** A line may have been called after the backup from which its batch was restored. */
async function closeUnknown(claimed: ClaimedBatch): Promise<boolean> {
  const { progress, request } = claimed.batch
  return !progress.restored || !request.exactly_once || closeLines(claimed, UNKNOWN)
}

/** False: the claim is lost. */
async function finish(claimed: ClaimedBatch, ending: Ending, reason?: BatchProgress['reason']): Promise<boolean> {
  const { batch, store, clock, log, crashHook } = claimed
  const now = secondsOf(clock.now())
  const isCancelled = ending === 'cancelled'
  const times = { ending: batch.progress.ending ?? ending, finalizing_at: batch.progress.finalizing_at ?? now }
  const noted = { ...times, pause: undefined, ...(reason && { reason }) }
  if (!(await saveProgress(claimed, noted, isCancelled ? 'cancelling' : 'finalizing'))) return false
  crashHook('batch: finalizing')
  const last = batch.progress.ending ?? ending
  const { reason: given, restored, is_recovered } = batch.progress
  const isKnown = !restored || is_recovered || last === 'completed'
  const why = !isKnown ? UNKNOWN : given ? { ...REASONS[last], ...given } : REASONS[last]
  if (!(await closeLines(claimed, why))) return false
  crashHook('batch: lines closed')
  await storeParts(claimed, { all: true })
  if (batch.api === 'openai')
    for (const kind of ['output', 'error'] as const) if (!(await writeFile(claimed, kind))) return false
  const status = batch.progress.ending ?? ending
  const progress = { ...batch.progress, ended_at: secondsOf(clock.now()) }
  const isSaved = await store.save(batch, {
    status,
    progress,
    due_ms: clock.now(),
    release: true,
    ...endingOf(claimed),
  })
  if (isSaved)
    log.info('batch ended', { batch_id: batch.batch_id, token_id: batch.token_id, status, lines: batch.total })
  crashHook('batch: ended')
  return isSaved
}

async function closeLines(
  { batch, store }: ClaimedBatch,
  reason: Parameters<typeof uncalledResult>[2],
): Promise<boolean> {
  for (;;) {
    const lines = await store.pending(batch.batch_id, 0, LINES_PER_WRITE)
    if (lines.length === 0) return true
    const results = lines.map((line) => ({ line: line.line, result: uncalledResult(batch, line, reason) }))
    if (!(await store.close(batch, results))) return false
  }
}

/** A file of results, whose id is stored before it is written: written again, it is the same. */
async function writeFile(claimed: ClaimedBatch, kind: ResultKind): Promise<boolean> {
  const { batch, store, files, signal, crashHook } = claimed
  if ((await store.parts(batch.batch_id, kind)).length === 0) return true
  const name = `${kind}_file_id` as const
  if (batch.progress[name] === undefined && !(await saveProgress(claimed, { [name]: files.newId() }))) return false
  const file_id = batch.progress[name] ?? ''
  const owner = { token_id: batch.token_id, project_id: batch.project_id ?? undefined }
  const { output_seconds } = batch.request
  const file = {
    owner,
    purpose: 'batch_output',
    filename: `${batch.batch_id}_${kind}.jsonl`,
    content_type: 'application/jsonl',
    file_id,
    ...(output_seconds !== undefined && { expires_at: secondsOf(claimed.clock.now()) + output_seconds }),
  } as const
  await files.write(file, await partsStream(claimed, batch.batch_id, [kind]), signal)
  crashHook('batch: output written')
  return true
}

/** Removes what an ended batch does not need any more; then all of it, once it has been kept long enough. */
async function clean({ batch, store, fileStore, settings, clock, crashHook }: ClaimedBatch): Promise<void> {
  const { batch_id, progress, request } = batch
  const ended_ms = (progress.ended_at ?? batch.created_at) * 1000
  const kept_until_ms = ended_ms + settings().keep_days * DAY_MILLISECONDS
  const isOver = batch.deleted_at !== null || clock.now() >= kept_until_ms
  if (progress.is_cleaned && isOver) {
    await removeParts({ store, fileStore }, batch_id)
    await store.remove(batch_id)
    return
  }
  if (!progress.is_cleaned) {
    while ((await store.deleteLines(batch_id, LINES_PER_DELETE)) === LINES_PER_DELETE);
    if (request.input_file_id === undefined || progress.has_copy) await fileStore.remove(inputKeyOf(batch_id))
    if (request.input_file_id !== undefined) await removeParts({ store, fileStore }, batch_id)
  }
  const due_ms = isOver ? clock.now() : kept_until_ms
  await store.save(batch, { progress: { ...progress, is_cleaned: true }, due_ms, release: true })
  crashHook('batch: cleaned')
}

/** Reads all lines, and stores where each lies. `lost`: the claim is. */
async function validate(claimed: ClaimedBatch): Promise<'ready' | 'failed' | 'lost'> {
  const { batch, store, clock, crashHook } = claimed
  const read = await readLines(claimed)
  if (!read) return 'lost'
  if (read.problems.length > 0) return (await fail(claimed, batch, read)) ? 'failed' : 'lost'
  const { total, model, has_native } = read
  const found = { ...(model !== undefined && { model }), ...(!has_native && { is_ordered: true as const }) }
  const progress = { ...batch.progress, in_progress_at: secondsOf(clock.now()), ...found }
  // It was cancelled meanwhile where this is refused.
  const isSaved = await store.save(batch, { status: 'in_progress', progress, total })
  if (!isSaved && !(await store.save(batch, { progress, total }))) return 'lost'
  batch.progress = progress
  batch.status = isSaved ? 'in_progress' : 'cancelling'
  crashHook('batch: validated')
  return 'ready'
}

/** Undefined: the claim is lost. */
async function readLines(claimed: ClaimedBatch) {
  const { batch, store, catalogue, signal, crashHook } = claimed
  const { api, endpoint } = batch
  const failed = (code: string, message: string, param: string | null = null) => ({
    total: 0,
    problems: [{ code, message, param, line: null }],
    model: undefined,
    has_native: false,
  })
  const caller = await claimed.callerOf(batch.token_id)
  if (!caller) return failed(REVOKED.code, REVOKED.message)
  const input = await inputStream(claimed).catch((thrown) => {
    if (thrown instanceof GatewayError && thrown.code === 'file_not_found') return thrown
    throw thrown
  })
  if (input instanceof GatewayError) return failed(input.code, input.message, 'input_file_id')
  // Requests of the Messages API were checked when they arrived: a model that is gone since is the error of its line.
  const lines = createLineCheck({ api, endpoint, caller, catalogue, checks_models: api === 'openai' })
  let valid: NewLine[] = []
  const add = async (least: number): Promise<boolean> => {
    if (lines.found().problems.length > 0) valid = []
    if (valid.length < least) return true
    const some = valid
    valid = []
    if (!(await store.addLines(batch, some))) return false
    crashHook('batch: lines added')
    return true
  }
  for await (const piece of linesOf(input, { max_line_bytes: MOST_LINE_BYTES })) {
    signal.throwIfAborted()
    for (const raw of piece) {
      const custom_id = lines.check(raw)
      const { line, offset, length: bytes } = raw
      if (custom_id !== undefined) valid.push({ line, offset, bytes, custom_id })
    }
    if (!(await add(LINES_PER_ADD))) return undefined
  }
  return (await add(1)) ? lines.found() : undefined
}
