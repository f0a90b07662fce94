/** The request log, as the operator writes it. */
import Type from 'typebox'
import {
  closed,
  flag,
  integer,
  list,
  mapping,
  number,
  oneOf,
  optional,
  required,
  section,
  text,
} from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const FileSink = section(
  {
    path: required({ ...mark.variable, minLength: 1 }, 'The file; relative to data_dir.'),
    max_megabytes: number({ exclusiveMinimum: 0, maximum: 100_000 }, 'Of one file. Default 100.'),
    max_files: integer({ minimum: 0, maximum: 10_000 }, 'Complete files to keep beside it. Default 10.'),
    daily: flag('A new file each day (UTC). Default true.'),
  },
  'A file with one line of JSON for each row.',
)

const HttpSink = section(
  {
    url: required(
      { ...mark.secret, ...mark.sent_to, pattern: '^https?://' },
      'Where batches are posted. Redirects are not followed.',
    ),
    format: oneOf(
      ['ndjson', 'json', 'elasticsearch'],
      "Lines of JSON (ClickHouse, Vector), one array, or Elasticsearch's bulk API. Default ndjson.",
    ),
    headers: mapping(Type.String(), mark.secret, 'Sent with every batch.'),
  },
  'Batches by HTTP POST.',
)

const identifier = (description: string) =>
  optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$', description }))

const ClickHouseSink = section(
  {
    url: required(
      { ...mark.secret, ...mark.sent_to, pattern: '^https?://' },
      'Its HTTP interface, such as https://clickhouse.example.com:8443. Redirects are not followed.',
    ),
    database: identifier('Default `default`.'),
    table: identifier('With the view `<table>_usage`. Default `gatehouse_requests`.'),
    username: text({ minLength: 1 }, 'Default: that of ClickHouse.'),
    password: text({ ...mark.secret, minLength: 1 }, 'Sent in a header.'),
    keep_days: integer({ minimum: 1, maximum: 3_660 }, 'Set when the table is made. Default: no end.'),
    create: flag('Make the table and its view where they are missing. Default true.'),
  },
  'A table of ClickHouse.',
)

const queueing = {
  max_queued: integer(
    { minimum: 100, maximum: 1_000_000 },
    'Rows that wait for a slow sink; others are dropped. Default 10000.',
  ),
  max_batch: integer({ minimum: 1, maximum: 10_000 }, 'Rows written together. Default 500.'),
  flush_seconds: number({ exclusiveMinimum: 0, maximum: 60 }, 'How long a row waits for others. Default 1.'),
}

const RequestSink = Type.Object(
  { file: optional(FileSink), http: optional(HttpSink), clickhouse: optional(ClickHouseSink), ...queueing },
  { ...closed, minProperties: 1, description: 'One of file, http and clickhouse.' },
)
export type RequestSink = Type.Static<typeof RequestSink>

const RedactionPattern = section({
  name: required({ pattern: '^[a-z][a-z0-9_-]{0,31}$' }, 'What is found becomes [redacted:name].'),
  pattern: required({ minLength: 1, maxLength: 500 }, 'A regular expression of RE2.'),
})
export type RedactionPattern = Type.Static<typeof RedactionPattern>

const accounts = (description: string) => list(Type.String({ minLength: 1 }), { maxItems: 10_000 }, description)

const ContentsConfig = section(
  {
    on_for: accounts('Ids of tokens and projects; "*": all. Default: none.'),
    by_header_for: accounts(
      'Ids of tokens and projects that may decide by x-gatehouse-log-contents; "*": all. Default: none.',
    ),
    max_kilobytes: integer(
      { minimum: 1, maximum: 1_024 },
      'Thousands of characters of a prompt, and of a response. Default 64.',
    ),
    max_queued_megabytes: integer({ minimum: 1, maximum: 1_024 }, 'Millions of characters that may wait. Default 16.'),
    keep_days: number({ exclusiveMinimum: 0, maximum: 3_660 }, 'Of contents, at most as long as rows. Default 7.'),
    redact: list(
      Type.Enum(['cards', 'ibans', 'email', 'phones', 'secrets']),
      'What is replaced. Default: all of these.',
    ),
    patterns: list(RedactionPattern, { maxItems: 50 }, 'Also replaced. Default: nothing.'),
  },
  'Prompts and responses, encrypted with GATEHOUSE_CONTENTS_KEY. Absent: none are recorded.',
)
export type ContentsConfig = Type.Static<typeof ContentsConfig>

export const mayRecordContents = ({ on_for = [], by_header_for = [] }: ContentsConfig): boolean =>
  on_for.length + by_header_for.length > 0

const days = (description: string) => number({ exclusiveMinimum: 0, maximum: 36_600 }, description)

const SummariesConfig = section(
  {
    minutes_keep_hours: number({ minimum: 2, maximum: 720 }, 'Of sums by minute. Default 24.'),
    hours_keep_days: days('Of sums by hour. Default 21.'),
    days_keep_days: days('Of sums by day. Default 1100.'),
  },
  'Sums of the request log, for charts.',
)

export const RequestLogConfig = section({
  enabled: flag('Record each call, without contents. Default true.'),
  keep_days: number({ exclusiveMinimum: 0, maximum: 3_660 }, 'Days to keep rows. Default 7.'),
  sinks: list(RequestSink, { ...mark.restart, maxItems: 10 }, 'Where rows also go. Needs a restart. Default: nowhere.'),
  reader: oneOf(
    ['store', 'clickhouse'],
    mark.restart,
    'Where console, admin API and feedback search rows. Needs a restart. Default store.',
  ),
  summaries: optional(SummariesConfig),
  contents: optional(ContentsConfig),
})
export type RequestLogConfig = Type.Static<typeof RequestLogConfig>
