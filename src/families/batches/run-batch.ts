/** Runs a batch that this process has claimed: the next step, from what the store says of it, the calls of its lines, and its end. */
import { REASONS, type Reason, UNKNOWN, uncalledResult } from '../../calls/batch-results.ts'
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchLine, BatchPause, BatchProgress, LineResult } from '../../store/batches/batch-store.ts'
import { callLine, validate, waitingLines } from './lines.ts'
import {
  type ClaimedBatch,
  clean,
  endingOf,
  REVOKED,
  saveProgress,
  secondsOf,
  storeParts,
  unstoredResults,
  writeFile,
} from './parts.ts'
import { type Ordered, runOrders } from './run-orders.ts'

export const ENDED: readonly string[] = ['completed', 'failed', 'cancelled', 'expired']
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

const LINES_PER_WRITE = 200

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
  const { reason: given, restored, is_recovered, is_ordered } = batch.progress
  const isKnown = !restored || (is_recovered && is_ordered) || last === 'completed'
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

async function closeLines({ batch, store }: ClaimedBatch, reason: Reason): Promise<boolean> {
  for (;;) {
    const lines = await store.pending(batch.batch_id, 0, LINES_PER_WRITE)
    if (lines.length === 0) return true
    const results = lines.map((line) => ({ line: line.line, result: uncalledResult(batch, line, reason) }))
    if (!(await store.close(batch, results))) return false
  }
}

/** `finished`: no line waits. `stopped`: it was cancelled. `closing`: the process stops. `gone`: its input was deleted. */
type Ran = 'finished' | 'expired' | 'stopped' | 'closing' | 'revoked' | 'gone' | BatchPause

/** Rejects when the run was interrupted; lines whose outcome is unknown then stay marked as started. */
async function runLines(claimed: ClaimedBatch): Promise<Ran> {
  const { batch, store, slots, clock, signal } = claimed
  const running: Promise<void>[] = []
  const state: { pause?: BatchPause; isRevoked?: true; fault?: unknown } = {}
  const results = await unstoredResults(claimed)

  const pauseFor = (ms: number, { code, message }: { code: string; message: string }) => {
    const until_ms = Math.round(clock.now() + ms)
    if (!state.pause || state.pause.until_ms < until_ms) state.pause = { code, message, until_ms }
  }
  const isExpired = () => clock.now() >= batch.expires_at * 1000
  const isOver = () =>
    claimed.isClosing() || signal.aborted || isExpired() || Boolean(state.pause ?? state.isRevoked ?? state.fault)

  async function run(line: BatchLine, text: string, caller: Caller): Promise<void> {
    const found = await callLine(claimed.call, { batch, line, text, caller, signal })
    claimed.crashHook('batch: line answered')
    if (found.is === 'ended') {
      await keep(claimed, line, found.result)
      claimed.crashHook('batch: line stored')
      results.add(found.result)
      if (found.busy_ms !== undefined) pauseFor(found.busy_ms, RESERVED)
    } else if (found.is === 'later') {
      await store.unstart(batch.batch_id, startedOf(line))
      pauseFor(found.wait_ms ?? 1_000, found)
    } else if (found.is === 'revoked') {
      await store.unstart(batch.batch_id, startedOf(line))
      state.isRevoked = true
    }
  }

  /** The caller that it is called as, where it may be. */
  async function start(line: BatchLine): Promise<Caller | 'gone' | 'stopped' | 'over'> {
    if (isOver()) return 'over'
    const caller = await claimed.callerOf(batch.token_id)
    if (!caller) state.isRevoked = true
    if (!caller) return 'over'
    const started = await store.start(batch, line)
    if (started === 'lost') throw LEASE_LOST
    return started === 'started' ? caller : started
  }

  async function runAll(): Promise<'finished' | 'stopped'> {
    for await (const { line, text } of waitingLines(claimed)) {
      if (isOver()) break
      const release = await slots.take([batch.token_id, batch.batch_id], signal)
      let started: Awaited<ReturnType<typeof start>> = 'over'
      try {
        started = await start(line)
      } finally {
        if (typeof started === 'string') release()
      }
      if (started === 'gone') continue
      if (typeof started === 'string') return started === 'stopped' ? 'stopped' : 'finished'
      claimed.crashHook('batch: line started')
      const work = run(line, text, started)
        .catch((error) => {
          state.fault ??= error
        })
        .finally(() => {
          running.splice(running.indexOf(work), 1)
          release()
        })
      running.push(work)
      await results.store()
    }
    return 'finished'
  }

  let outcome: Ran
  try {
    outcome = await runAll().catch((thrown) => {
      if (thrown instanceof GatewayError && thrown.code === 'file_not_found') return 'gone'
      throw thrown
    })
  } finally {
    await Promise.all(running) // so that their results are stored, and nobody calls them meanwhile
  }
  if (state.fault) throw state.fault
  signal.throwIfAborted()
  if (outcome === 'stopped' || outcome === 'gone') return outcome
  if (state.isRevoked) return 'revoked'
  if (isExpired()) return 'expired'
  if (claimed.isClosing()) return 'closing'
  return state.pause ?? outcome
}

const RESERVED = {
  code: 'rate_limit_exceeded',
  message: 'Little is left of a rate limit, which is kept for other calls of the token.',
}

const startedOf = ({ line, attempts }: BatchLine) => ({ line, attempts: attempts + 1 })

const STORE_ATTEMPTS = 30
const STORE_MILLISECONDS = 2_000

/** What was paid for must not be lost because the store is away for a minute. */
async function keep({ store, batch, clock, log }: ClaimedBatch, line: BatchLine, result: LineResult): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const isStored = await store.end(batch.batch_id, startedOf(line), result)
      if (!isStored)
        log.warn('batch line was given up before its result', { batch_id: batch.batch_id, line: line.line })
      return
    } catch (error) {
      if (attempt === STORE_ATTEMPTS) throw error
      await new Promise<void>((resolve) => void clock.after(STORE_MILLISECONDS, resolve))
    }
  }
}
