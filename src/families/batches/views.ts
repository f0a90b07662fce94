/** Batches as clients see them, in both APIs. */
import type { BatchObject, MessageBatchObject } from '../../spec/batch.ts'
import type { Batch } from '../../store/batches/batch-store.ts'
import { secondsOf } from './parts.ts'

export function batchView(batch: Batch): BatchObject {
  const { status, progress, request, total, succeeded, errored, canceled, expired } = batch
  const { input_tokens, cached_tokens, output_tokens, reasoning_tokens } = batch
  const { model, problems, pause, ended_at = null } = progress
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
    ...(pause && {
      waiting: { code: pause.code, message: pause.message, until: secondsOf(pause.until_ms) },
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

const dateOf = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
const dateOrNull = (seconds: number | null | undefined): string | null =>
  seconds === null || seconds === undefined ? null : dateOf(seconds)

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
    created_at: dateOf(batch.created_at),
    expires_at: dateOf(batch.expires_at),
    ended_at: dateOrNull(progress.ended_at),
    cancel_initiated_at: dateOrNull(batch.cancelling_at),
    archived_at: null,
    results_url: hasEnded ? `${request.base_url}/v1/messages/batches/${batch_id}/results` : null,
  }
}
