/** The request log, as the operator writes it. */
import Type from 'typebox'
import { closed, flag, integer, list, number, oneOf, optional, section } from '../../spec/fields.ts'

const FileSink = section(
  {
    path: Type.String({ minLength: 1, description: 'The file; relative to data_dir.' }),
    max_megabytes: number({ exclusiveMinimum: 0, maximum: 100_000 }, 'Of one file. Default 100.'),
    max_files: integer({ minimum: 0, maximum: 10_000 }, 'Complete files to keep beside it. Default 10.'),
    daily: flag('A new file each day (UTC). Default true.'),
  },
  'A file with one line of JSON for each row.',
)

const HttpSink = section(
  {
    url: Type.String({ pattern: '^https?://', description: 'Where batches are posted. Redirects are not followed.' }),
    format: oneOf(
      ['ndjson', 'json', 'elasticsearch'],
      'ndjson: a line of JSON each, as ClickHouse (JSONEachRow) and Vector take it. json: one array. elasticsearch: its bulk API. Default ndjson.',
    ),
    headers: optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'Sent with every batch; ${NAME} takes a secret from the environment.',
      }),
    ),
  },
  'Batches by HTTP POST.',
)

const queueing = {
  max_queued: integer(
    { minimum: 100, maximum: 1_000_000 },
    'Rows that wait in memory while the sink is slow or away; further ones are dropped and counted. Default 10000.',
  ),
  max_batch: integer({ minimum: 1, maximum: 10_000 }, 'Rows written together. Default 500.'),
  flush_seconds: number({ exclusiveMinimum: 0, maximum: 60 }, 'How long a row waits for others. Default 1.'),
}

const RequestSink = Type.Object(
  { file: optional(FileSink), http: optional(HttpSink), ...queueing },
  { ...closed, minProperties: 1, description: 'Either file or http.' },
)
export type RequestSink = Type.Static<typeof RequestSink>

const RedactionPattern = section({
  name: Type.String({
    pattern: '^[a-z][a-z0-9_-]{0,31}$',
    description: 'Stands in the text instead of what was found: [redacted:name].',
  }),
  pattern: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'A regular expression in the syntax of RE2, which takes linear time on any text.',
  }),
})
export type RedactionPattern = Type.Static<typeof RedactionPattern>

const accounts = (description: string) => list(Type.String({ minLength: 1 }), { maxItems: 10_000 }, description)

const ContentsConfig = section(
  {
    on_for: accounts(
      'Ids of the tokens and projects whose prompts and responses are recorded; "*" is every call. Default: none.',
    ),
    by_header_for: accounts(
      'Ids of the tokens and projects that may send x-gatehouse-log-contents, on or off; "*" is all. Default: none.',
    ),
    max_kilobytes: integer(
      { minimum: 1, maximum: 1_024 },
      'Characters, in thousands, of the prompt and of the response of one call; more is cut. Default 64.',
    ),
    max_queued_megabytes: integer(
      { minimum: 1, maximum: 1_024 },
      'Millions of characters that may wait in memory; further contents are dropped and counted. Default 16.',
    ),
    keep_days: number(
      { exclusiveMinimum: 0, maximum: 3_660 },
      'Days to keep contents, at most as long as rows are kept. Default 7.',
    ),
    redact: list(
      Type.Enum(['cards', 'ibans', 'email', 'phones', 'secrets']),
      'What is replaced before contents are stored. Default: all of these.',
    ),
    patterns: list(RedactionPattern, { maxItems: 50 }, 'What is replaced besides. Default: nothing.'),
  },
  'Prompts and responses of chat calls, encrypted with the key of GATEHOUSE_CONTENTS_KEY. Absent: none are recorded.',
)
export type ContentsConfig = Type.Static<typeof ContentsConfig>

/** Whether contents of any call may be recorded. */
export const mayRecordContents = ({ on_for = [], by_header_for = [] }: ContentsConfig): boolean =>
  on_for.length + by_header_for.length > 0

export const RequestLogConfig = section({
  enabled: flag('Record each call in the store, without its contents. Default true.'),
  keep_days: number({ exclusiveMinimum: 0, maximum: 3_660 }, 'Days to keep rows. Default 7.'),
  sinks: list(
    RequestSink,
    { maxItems: 10 },
    'Where rows go besides the store, also with `enabled: false`. Needs a restart. Default: nowhere.',
  ),
  contents: optional(ContentsConfig),
})
export type RequestLogConfig = Type.Static<typeof RequestLogConfig>
