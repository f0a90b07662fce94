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

const RedactionPattern = Type.Object(
  {
    name: Type.String({
      pattern: '^[a-z][a-z0-9_-]{0,31}$',
      description: 'Stands in the text instead of what was found: [redacted:name].',
    }),
    pattern: Type.String({
      minLength: 1,
      maxLength: 500,
      description: 'A regular expression in the syntax of RE2, which takes linear time on any text.',
    }),
  },
  closed,
)
export type RedactionPattern = Type.Static<typeof RedactionPattern>

const accounts = (description: string) =>
  optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 10_000, description }))

const ContentsConfig = Type.Object(
  {
    on_for: accounts(
      'Ids of the tokens and projects whose prompts and responses are recorded; "*" is every call. Default: none.',
    ),
    by_header_for: accounts(
      'Ids of the tokens and projects that may send x-gatehouse-log-contents, on or off; "*" is all. Default: none.',
    ),
    max_kilobytes: optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_024,
        description:
          'Characters, in thousands, of the prompt and of the response of one call; more is cut. Default 64.',
      }),
    ),
    max_queued_megabytes: optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_024,
        description:
          'Millions of characters that may wait in memory; further contents are dropped and counted. Default 16.',
      }),
    ),
    keep_days: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 3_660,
        description: 'Days to keep contents, at most as long as rows are kept. Default 7.',
      }),
    ),
    redact: optional(
      Type.Array(Type.Enum(['cards', 'ibans', 'email', 'phones', 'secrets']), {
        description: 'What is replaced before contents are stored. Default: all of these.',
      }),
    ),
    patterns: optional(
      Type.Array(RedactionPattern, { maxItems: 50, description: 'What is replaced besides. Default: nothing.' }),
    ),
  },
  {
    ...closed,
    description:
      'Prompts and responses of chat calls, encrypted with the key of GATEHOUSE_CONTENTS_KEY. Absent: none are recorded.',
  },
)
export type ContentsConfig = Type.Static<typeof ContentsConfig>

/** Whether contents of any call may be recorded. */
export const mayRecordContents = ({ on_for = [], by_header_for = [] }: ContentsConfig): boolean =>
  on_for.length + by_header_for.length > 0

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
        description: 'Where rows go besides the store, also with `enabled: false`. Needs a restart. Default: nowhere.',
      }),
    ),
    contents: optional(ContentsConfig),
  },
  closed,
)
export type RequestLogConfig = Type.Static<typeof RequestLogConfig>
