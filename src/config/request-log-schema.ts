/** The request log, as the operator writes it. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const FileSink = Type.Object(
  {
    path: Type.String({ minLength: 1, description: 'The file; relative to data_dir.' }),
    max_megabytes: optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 100_000, description: 'Of one file. Default 100.' }),
    ),
    max_files: optional(
      Type.Integer({ minimum: 0, maximum: 10_000, description: 'Complete files to keep beside it. Default 10.' }),
    ),
    daily: optional(Type.Boolean({ description: 'A new file each day (UTC). Default true.' })),
  },
  { ...closed, description: 'A file with one line of JSON for each row.' },
)

const HttpSink = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', description: 'Where batches are posted. Redirects are not followed.' }),
    format: optional(
      Type.Enum(['ndjson', 'json', 'elasticsearch'], {
        description:
          'ndjson: a line of JSON each, as ClickHouse (JSONEachRow) and Vector take it. json: one array. elasticsearch: its bulk API. Default ndjson.',
      }),
    ),
    headers: optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'Sent with every batch; ${NAME} takes a secret from the environment.',
      }),
    ),
  },
  { ...closed, description: 'Batches by HTTP POST.' },
)

const queueing = {
  max_queued: optional(
    Type.Integer({
      minimum: 100,
      maximum: 1_000_000,
      description:
        'Rows that wait in memory while the sink is slow or away; further ones are dropped and counted. Default 10000.',
    }),
  ),
  max_batch: optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Rows written together. Default 500.' }),
  ),
  flush_seconds: optional(
    Type.Number({ exclusiveMinimum: 0, maximum: 60, description: 'How long a row waits for others. Default 1.' }),
  ),
}

const RequestSink = Type.Object(
  { file: optional(FileSink), http: optional(HttpSink), ...queueing },
  { ...closed, minProperties: 1, description: 'Either file or http.' },
)
export type RequestSink = Type.Static<typeof RequestSink>

export const RequestLogConfig = Type.Object(
  {
    enabled: optional(
      Type.Boolean({ description: 'Record each call in the store, without its contents. Default true.' }),
    ),
    keep_days: optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 3_660, description: 'Days to keep rows. Default 7.' }),
    ),
    sinks: optional(
      Type.Array(RequestSink, {
        maxItems: 10,
        description:
          'Where rows go besides the store, also where `enabled` is false. A change needs a restart. Default: nowhere.',
      }),
    ),
  },
  closed,
)
export type RequestLogConfig = Type.Static<typeof RequestLogConfig>
