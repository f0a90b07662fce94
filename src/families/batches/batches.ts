/** Batches: stored before the request is acknowledged, run by any process with free slots, and as clients see them in both APIs. */
import { estimateBatch } from '../../calls/batch-estimate.ts'
import { knownProblems } from '../../calls/batch-lines.ts'
import { createFairSlots } from '../../jobs/fair-slots.ts'
import { createJobLoop, type LoopControl } from '../../jobs/job-loop.ts'
import { orderedAlphanumerics, randomAlphanumerics } from '../../kit/secret.ts'
import type { BatchExchange } from '../../protocols/shared/batch-exchange.ts'
import type { BatchEstimate, BatchObject, MessageBatchObject } from '../../spec/batch.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import {
  type Batch,
  type BatchApi,
  type BatchFilter,
  type BatchRequest,
  waitingOf,
} from '../../store/batches/batch-store.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { rfc3339 } from '../files/routes/file-formats.ts'
import { callbackOf } from '../tasks/callback.ts'
import { requestOf } from './lines.ts'
import { type BatchParts, fail, partsStream, secondsOf } from './parts.ts'
import { ENDED, runBatch } from './run-batch.ts'

type NewBatch = {
  batch_id: string
  api: BatchApi
  endpoint: string
  caller: Caller
  request: BatchRequest
  callback_url?: string | undefined
  /** How many lines it has; 0: not known yet. */
  total: number
  /** Of its input, where it was uploaded. */
  file?: FileRow
}

export type Batches = LoopControl & {
  /** The id of the next batch. */
  newId(api: BatchApi): string
  /** Throws `rate_limit_exceeded` where the token has too many that have not ended. */
  assertMayCreate(token_id: string): Promise<void>
  create(batch: NewBatch): Promise<Batch>
  /** What it would use and cost; nothing is created. */
  estimate(batch: NewBatch, file: FileRow, signal: AbortSignal): Promise<BatchEstimate>
  /** Throws `batch_not_found`. */
  find(batch_id: string, api: BatchApi, token_id: string): Promise<Batch>
  list(filter: BatchFilter): Promise<Batch[]>
  /** Lets the calls that run end, and starts no more. Throws `batch_not_found`. */
  cancel(batch_id: string, api: BatchApi, token_id: string): Promise<Batch>
  /** Deletes an ended batch. Throws `batch_not_found` and `batch_not_ended`. */
  remove(batch_id: string, api: BatchApi, token_id: string): Promise<void>
  /** The results of an ended batch, as JSONL. */
  results(batch: Batch): Promise<ReadableStream<Uint8Array>>
  /** Starts no further calls; those that run are requests of the app, which ends them. */
  announceStop(): void
  /** By status, of those that have not ended. */
  counts(): Promise<{ status: string; batches: number }[]>
  /** Calls that batches make now. */
  calls(): number
}

/** After this time other processes claim the batches of a process that died. */
const LEASE_MILLISECONDS = 60_000
const RENEW_MILLISECONDS = 15_000
const POLL_MILLISECONDS = 2_000
/** Batches that a process runs at a time; they share its slots. */
const CONCURRENCY = 64
/** Of one token: others find a place. */
const MOST_OF_TOKEN = 8
const POSTPONE_MILLISECONDS = 5_000
const WINDOW_SECONDS = 86_400
const RETRY_SECONDS = 600

export function createBatches(parts: BatchParts): Batches {
  const { store, settings, clock, log, crashHook } = parts
  const slots = createFairSlots(() => settings().concurrency)
  const by = `batches_${randomAlphanumerics(16)}`
  const running = new Map<string, number>()
  let isClosing = false

  const loop = createJobLoop<Batch>(
    {
      name: 'batch',
      fieldsOf: ({ batch_id }) => ({ batch_id }),
      lease_ms: LEASE_MILLISECONDS,
      poll_ms: POLL_MILLISECONDS,
      async queues() {
        const due_ms = isClosing ? null : await store.earliest()
        return due_ms === null ? [] : [{ queue: '', due_ms }]
      },
      concurrency: () => CONCURRENCY,
      claim: ({ now_ms, until_ms, limit }) => store.claim({ by, now_ms, until_ms, limit }),
      fairness: {
        reserve({ token_id }) {
          const own = running.get(token_id) ?? 0
          if (own >= MOST_OF_TOKEN) return clock.now() + POSTPONE_MILLISECONDS
          running.set(token_id, own + 1)
          return undefined
        },
        postpone: (jobs) =>
          store.postpone(jobs.map(({ job: { batch_id, fence }, due_ms }) => ({ batch_id, fence, due_ms }))),
      },
      heartbeat: { every_ms: RENEW_MILLISECONDS, renew: (batch, until_ms) => store.renew(batch, until_ms) },
      async run(batch, { signal }) {
        try {
          return await runBatch({ ...parts, batch, slots, signal, isClosing: () => isClosing })
        } finally {
          const left = (running.get(batch.token_id) ?? 1) - 1
          if (left > 0) running.set(batch.token_id, left)
          else running.delete(batch.token_id)
        }
      },
      release: (batch) => store.save(batch, { due_ms: clock.now(), release: true }),
    },
    { clock, log },
  )

  async function find(batch_id: string, api: BatchApi, token_id: string): Promise<Batch> {
    const batch = await store.find(batch_id, token_id)
    if (batch?.api === api) return batch
    throw new GatewayError('batch_not_found', `There is no batch ${JSON.stringify(batch_id.slice(0, 100))}.`)
  }

  function newBatch({ batch_id, api, endpoint, caller, request, total }: NewBatch): Batch {
    const created_at = secondsOf(clock.now())
    return {
      batch_id,
      token_id: caller.token_id,
      project_id: caller.project_id ?? null,
      api,
      endpoint,
      status: 'validating',
      request,
      progress: {},
      created_at,
      expires_at: created_at + WINDOW_SECONDS,
      cancelling_at: null,
      deleted_at: null,
      ...NOTHING,
      total,
      due_ms: clock.now(),
      leased_by: '',
      fence: 0,
    }
  }

  return {
    newId: (api) => `${api === 'openai' ? 'batch_' : 'msgbatch_'}${orderedAlphanumerics(clock.now(), 24)}`,

    async assertMayCreate(token_id) {
      const most = settings().max_unfinished
      if ((await store.unfinished(token_id)) < most) return
      throw new GatewayError(
        'rate_limit_exceeded',
        `This token has ${most} batches that have not ended: wait for some, or cancel them.`,
        { retry_after: RETRY_SECONDS },
      )
    },

    async create(asked) {
      const { endpoint, caller, request, callback_url, file } = asked
      const callback = callbackOf(
        { ...(callback_url !== undefined && { callback_url }) },
        { callback_origins: parts.callback_origins() },
      )
      const batch = newBatch({ ...asked, request: callback ? { ...request, callback } : request })
      crashHook('batch: before the row')
      await store.add(batch)
      crashHook('batch: after the row')
      const known = file && knownProblems(file, { endpoint, caller, catalogue: parts.catalogue })
      const failed = known && { ...batch, ...(await fail(parts, batch, known)) }
      loop.wake()
      return failed ?? batch
    },

    async estimate(asked, file, signal) {
      const [batch, { api, endpoint, caller }] = [newBatch(asked), asked]
      return estimateBatch(await parts.files.read(file), {
        ...{ api, endpoint, caller, signal, catalogue: parts.catalogue, currency: parts.currency() },
        async priceOf({ line, text }) {
          const exchange: BatchExchange = { entry_id: '', estimates: true }
          const request = requestOf(batch, { line }, text)
          if (request) await parts.call({ ...request, signal, caller, exchange })
          return exchange.estimated
        },
      })
    },

    find,
    list: store.list,

    async cancel(batch_id, api, token_id) {
      await find(batch_id, api, token_id)
      const at = { now: secondsOf(clock.now()), now_ms: clock.now(), token_id }
      const batch = await store.cancel(batch_id, at)
      loop.wake()
      return batch ?? find(batch_id, api, token_id)
    },

    async remove(batch_id, api, token_id) {
      const batch = await find(batch_id, api, token_id)
      if (!ENDED.includes(batch.status))
        throw new GatewayError('batch_not_ended', `The batch ${batch_id} has not ended: cancel it first, or wait.`)
      await store.hide(batch_id, token_id, { now: secondsOf(clock.now()), now_ms: clock.now() })
      loop.wake()
    },

    results: ({ batch_id }) => partsStream(parts, batch_id),
    start: loop.start,
    announceStop() {
      isClosing = true
    },
    async stop(options) {
      isClosing = true
      await loop.stop(options)
    },
    idle: loop.idle,
    counts: store.counts,
    calls: slots.taken,
  }
}

const NOTHING = {
  succeeded: 0,
  errored: 0,
  canceled: 0,
  expired: 0,
  input_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
}

export function batchView(batch: Batch): BatchObject {
  const { status, progress, request, total, succeeded, errored, canceled, expired } = batch
  const { input_tokens, cached_tokens, output_tokens, reasoning_tokens } = batch
  const { model, problems, ended_at = null } = progress
  const waiting = waitingOf(progress)
  const at = (ended: Batch['status']) => (status === ended ? ended_at : null)
  return {
    id: batch.batch_id,
    object: 'batch',
    endpoint: batch.endpoint,
    ...(model !== undefined && { model }),
    errors: problems ? { object: 'list', data: problems } : null,
    input_file_id: request.input_file_id ?? '',
    completion_window: request.completion_window ?? '24h',
    status,
    output_file_id: ended_at === null ? null : (progress.output_file_id ?? null),
    error_file_id: ended_at === null ? null : (progress.error_file_id ?? null),
    created_at: batch.created_at,
    in_progress_at: progress.in_progress_at ?? null,
    expires_at: batch.expires_at,
    finalizing_at: progress.finalizing_at ?? null,
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: batch.cancelling_at,
    cancelled_at: at('cancelled'),
    request_counts: { total, completed: succeeded, failed: errored + canceled + expired },
    usage: {
      input_tokens,
      input_tokens_details: { cached_tokens },
      output_tokens,
      output_tokens_details: { reasoning_tokens },
      total_tokens: input_tokens + output_tokens,
    },
    metadata: request.metadata ?? null,
    ...(waiting && {
      waiting: {
        code: waiting.code,
        message: waiting.message,
        ...(waiting.since_ms !== undefined && { since: secondsOf(waiting.since_ms) }),
        until: secondsOf(waiting.until_ms),
      },
    }),
  }
}

/** The event of its end, with what a client reads then; undefined: it has not ended. */
export function batchEnd(batch: Batch): { finish_time: number; type: string; data: () => unknown } | undefined {
  const { status, progress, api } = batch
  if (progress.ended_at === undefined) return undefined
  const data = () => (api === 'openai' ? batchView(batch) : messageBatchView(batch))
  return { finish_time: progress.ended_at, type: `batch.${status}`, data }
}

const dateOrNull = (seconds: number | null | undefined): string | null =>
  seconds === null || seconds === undefined ? null : rfc3339(seconds)

export function messageBatchView(batch: Batch): MessageBatchObject {
  const { batch_id, status, total, succeeded, errored, canceled, expired, request, progress } = batch
  const hasEnded = progress.ended_at !== undefined
  return {
    id: batch_id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : status === 'cancelling' ? 'canceling' : 'in_progress',
    // As documented: requests count as processing until the whole batch has ended.
    request_counts: hasEnded
      ? { processing: total - succeeded - errored - canceled - expired, succeeded, errored, canceled, expired }
      : { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    created_at: rfc3339(batch.created_at),
    expires_at: rfc3339(batch.expires_at),
    ended_at: dateOrNull(progress.ended_at),
    cancel_initiated_at: dateOrNull(batch.cancelling_at),
    archived_at: null,
    results_url: hasEnded ? `${request.base_url}/v1/messages/batches/${batch_id}/results` : null,
  }
}
