/** Batches: in the form of the OpenAI API, and in that of the Messages API. */
import Type from 'typebox'
import { flag, ID_PAGE, idList, optional, orNull, section, text, titled } from './fields.ts'

export const BATCH_STATUSES = [
  'validating',
  'failed',
  'in_progress',
  'finalizing',
  'completed',
  'expired',
  'cancelling',
  'cancelled',
] as const
export type BatchStatus = (typeof BATCH_STATUSES)[number]
export const UNFINISHED_BATCHES: readonly BatchStatus[] = ['validating', 'in_progress', 'finalizing', 'cancelling']

/** States separated by commas, or `unfinished` for all that have not ended. `unknown`: the first word that is none. */
export function readBatchStatuses(text: string): { statuses: BatchStatus[]; unknown?: string } {
  const statuses: BatchStatus[] = []
  for (const word of text.split(',').map((part) => part.trim())) {
    const named = word === 'unfinished' ? UNFINISHED_BATCHES : BATCH_STATUSES.filter((status) => status === word)
    if (named.length === 0) return { statuses, unknown: word }
    statuses.push(...named)
  }
  return { statuses }
}

const time = (description: string) => orNull(Type.Integer(), description)

const Metadata = Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 }), {
  maxProperties: 16,
  description: 'Up to 16 texts by name.',
})

export const BatchCreate = titled('BatchCreate', {
  input_file_id: Type.String({ description: 'An uploaded file of purpose `batch`: JSONL, one request a line.' }),
  endpoint: Type.String({
    description:
      'What each line calls: `/v1/chat/completions`, `/v1/responses`, `/v1/embeddings`, `/v1/completions`, `/v1/moderations` or `/v1/images/generations`.',
  }),
  completion_window: Type.Literal('24h', { description: 'The time after which what has not been executed expires.' }),
  metadata: optional(Metadata),
  output_expires_after: optional(
    section(
      {
        anchor: Type.Literal('created_at'),
        seconds: Type.Integer({ minimum: 3_600, maximum: 2_592_000, description: 'From an hour to 30 days.' }),
      },
      'When the files of results are deleted. Default: as other files.',
    ),
  ),
  callback_url: text('Receives a webhook, a signed POST, when the batch ends.'),
  dry_run: flag(
    'Nothing is created: the response is an estimate of its usage and cost, with the problems of its input.',
  ),
  exactly_once: flag(
    'A request whose outcome is unknown after a crash of the gateway is not repeated: it ends with the error `outcome_unknown`. Default false: it is repeated, and its result has `called_again`.',
  ),
})
export type BatchCreate = Type.Static<typeof BatchCreate>

const BatchError = Type.Object({
  code: Type.String(),
  message: Type.String(),
  param: orNull(Type.String()),
  line: orNull(Type.Integer()),
})

const BatchErrors = orNull(
  Type.Object({ object: Type.Literal('list'), data: Type.Array(BatchError) }),
  'Why the batch failed: the first 100 problems of its input.',
)
const amount = (description: string) => orNull(Type.Number(), `${description} null: a price is not known.`)

export const BatchEstimate = Type.Object(
  {
    object: Type.Literal('batch.estimate'),
    endpoint: Type.String(),
    request_counts: Type.Object({ total: Type.Integer(), invalid: Type.Integer() }),
    errors: BatchErrors,
    usage: Type.Object({ input_tokens: Type.Integer(), most_output_tokens: Type.Integer() }),
    cost: Type.Object({
      lowest: amount('Of the input alone.'),
      highest: amount('With all output that the requests allow.'),
      currency: Type.String(),
    }),
  },
  { title: 'BatchEstimate', description: 'Of a request with `dry_run`.' },
)
export type BatchEstimate = Type.Static<typeof BatchEstimate>

export const BatchObject = titled('Batch', {
  id: Type.String(),
  object: Type.Literal('batch'),
  endpoint: Type.String(),
  model: text('Where all requests name the same.'),
  errors: BatchErrors,
  input_file_id: Type.String(),
  completion_window: Type.String(),
  status: Type.Enum([...BATCH_STATUSES]),
  output_file_id: orNull(Type.String(), 'The results of requests that succeeded.'),
  error_file_id: orNull(Type.String(), 'The results of all other requests.'),
  created_at: Type.Integer(),
  in_progress_at: time('Unix seconds.'),
  expires_at: time('Unix seconds.'),
  finalizing_at: time('Unix seconds.'),
  completed_at: time('Unix seconds.'),
  failed_at: time('Unix seconds.'),
  expired_at: time('Unix seconds.'),
  cancelling_at: time('Unix seconds.'),
  cancelled_at: time('Unix seconds.'),
  request_counts: Type.Object({ total: Type.Integer(), completed: Type.Integer(), failed: Type.Integer() }),
  usage: Type.Optional(
    Type.Object({
      input_tokens: Type.Integer(),
      input_tokens_details: Type.Object({ cached_tokens: Type.Integer() }),
      output_tokens: Type.Integer(),
      output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
      total_tokens: Type.Integer(),
    }),
  ),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
  waiting: Type.Optional(
    Type.Object(
      { code: Type.String(), message: Type.String(), since: Type.Optional(Type.Integer()), until: Type.Integer() },
      {
        description:
          'Why requests wait, and until when in unix seconds; `since`: where the provider has no room for a batch of its own.',
      },
    ),
  ),
})
export type BatchObject = Type.Static<typeof BatchObject>

export const BatchList = idList('BatchList', BatchObject)

export const MessageBatchCreate = titled('MessageBatchCreate', {
  requests: Type.Array(
    Type.Object({
      custom_id: Type.String({
        pattern: '^[a-zA-Z0-9_-]{1,64}$',
        description: 'By which its result is found: 1 to 64 letters, digits, `_` and `-`, unique in the batch.',
      }),
      params: Type.Object(
        {},
        { additionalProperties: true, description: 'As the body of `/v1/messages`, without `stream`.' },
      ),
    }),
    { minItems: 1, maxItems: 100_000, description: 'At most 256 MB together.' },
  ),
  callback_url: text('Receives a webhook, a signed POST, when the batch ends.'),
  exactly_once: flag('As of `/v1/batches`. Default false.'),
})

const date = (description: string) => orNull(Type.String(), description)
export const MessageBatchObject = titled('MessageBatch', {
  id: Type.String(),
  type: Type.Literal('message_batch'),
  processing_status: Type.Enum(['in_progress', 'canceling', 'ended']),
  request_counts: Type.Object({
    processing: Type.Integer(),
    succeeded: Type.Integer(),
    errored: Type.Integer(),
    canceled: Type.Integer(),
    expired: Type.Integer(),
  }),
  created_at: Type.String(),
  expires_at: Type.String(),
  ended_at: date('RFC 3339; null: it has not ended.'),
  cancel_initiated_at: date('RFC 3339.'),
  archived_at: date('Always null.'),
  results_url: date('Where its results are, once it has ended.'),
})
export type MessageBatchObject = Type.Static<typeof MessageBatchObject>

export const MessageBatchList = titled('MessageBatchList', { data: Type.Array(MessageBatchObject), ...ID_PAGE })
export const MessageBatchDeleted = titled('MessageBatchDeleted', {
  id: Type.String(),
  type: Type.Literal('message_batch_deleted'),
})
