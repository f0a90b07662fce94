/** Sends the rows of the request log elsewhere, each sink with a bounded queue of its own: a slow one holds up nobody. */
import { resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import type { RequestSink } from '../../config/schema/request-log-schema.ts'
import { type BatchHealth, BatchQueue } from '../../kit/batch-queue.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { RequestLogStore, RequestRow } from '../../store/requests/request-row.ts'
import { createHttpBatch } from '../export/http-batch.ts'
import { createNdjsonFile } from '../export/ndjson-file.ts'
import type { ClickHouseLog } from './clickhouse-log.ts'
import { viewRow } from './request-view.ts'

export type RequestSinks = {
  push(row: RequestRow): void
  health(): (BatchHealth & { sink: string })[]
  flush(): Promise<void>
  close(options: { deadline_ms: number }): Promise<void>
}

type ClickHouseSettings = NonNullable<RequestSink['clickhouse']>

const MEGABYTE = 1_000_000
const TIMEOUT_MILLISECONDS = 30_000

type SinkParts = {
  config: Pick<Config, 'request_log' | 'data_dir'>
  /** Gives rows their ids in the store. */
  assignIds(rows: readonly RequestRow[]): Promise<void>
  clock: Clock
  log: Log
}

/** As configured at the start: a change of sinks needs a restart. */
export function createRequestSinks({ config, assignIds, clock, log }: SinkParts): RequestSinks {
  const sinks = config.request_log.sinks.map((sink, index) => {
    const name = `request_log.sinks[${index}]`
    const { max_queued = 10_000, max_batch = 500, flush_seconds = 1 } = sink
    const queue = new BatchQueue<RequestRow>({
      name,
      write: writerOf(sink, { data_dir: config.data_dir, assignIds, clock }),
      max_queued,
      max_batch,
      every_ms: flush_seconds * 1_000,
      timeout_ms: TIMEOUT_MILLISECONDS,
      clock,
      log,
    })
    return { name, queue }
  })
  const each = (work: (queue: BatchQueue<RequestRow>) => Promise<void>) =>
    Promise.all(sinks.map(({ queue }) => work(queue))).then(() => undefined)
  return {
    push(row) {
      ids.set(row, `${row.at_ms.toString(36)}-${process_id}-${(count++).toString(36)}`)
      for (const { queue } of sinks) queue.push(row)
    },
    health: () => sinks.map(({ name, queue }) => ({ sink: name, ...queue.health() })),
    flush: () => each((queue) => queue.flush()),
    close: (options) => each((queue) => queue.close(options)),
  }
}

type Writer = (rows: readonly RequestRow[], signal: AbortSignal) => Promise<number>

type WriterParts = Pick<SinkParts, 'assignIds' | 'clock'> & { data_dir: string }

function writerOf({ file, http, clickhouse }: RequestSink, { data_dir, assignIds, clock }: WriterParts): Writer {
  if (clickhouse) {
    const opened = lazyClickHouse(clickhouse)
    return async (rows, signal) => {
      await assignIds(rows)
      return (await opened()).append(rows, signal)
    }
  }
  if (file) {
    const { path, max_megabytes = 100, max_files = 10, daily = true } = file
    const settings = { path: resolve(data_dir, path), max_bytes: max_megabytes * MEGABYTE, max_files, daily }
    const lines = createNdjsonFile(settings, clock.now)
    return async (rows) => {
      await lines.append(await inTurns(rows, jsonOf))
      return 0
    }
  }
  const { url = '', format = 'ndjson', headers = {} } = http ?? {}
  const batch = createHttpBatch({ url, format, headers })
  return async (rows, signal) =>
    batch.send(await inTurns(rows, (row) => ({ id: idOf(row), json: jsonOf(row) })), signal)
}

/** Loaded where it is configured only. */
function lazyClickHouse(settings: ClickHouseSettings): () => Promise<ClickHouseLog> {
  let opened: Promise<ClickHouseLog> | undefined
  return () => {
    opened ??= import('./clickhouse-log.ts').then(({ createClickHouseLog }) => createClickHouseLog(settings))
    return opened
  }
}

/** The searches of the request log: in the store, or in the sink that `reader` names. */
export function searchesOf<Searched extends Pick<RequestLogStore, 'search' | 'facets' | 'find'>>(
  store: Searched,
  { reader, sinks }: Pick<Config['request_log'], 'reader' | 'sinks'>,
): Searched {
  const settings = reader === 'clickhouse' ? sinks.find(({ clickhouse }) => clickhouse)?.clickhouse : undefined
  if (settings === undefined) return store
  const opened = lazyClickHouse(settings)
  return {
    ...store,
    search: async (query) => (await opened()).search(query),
    facets: async (filter) => (await opened()).facets(filter),
    find: async (row_ids) => (await opened()).find(row_ids),
  }
}

/** A row takes some ten microseconds: calls go on between two turns. */
const ROWS_PER_TURN = 25

async function inTurns<Encoded>(rows: readonly RequestRow[], encode: (row: RequestRow) => Encoded): Promise<Encoded[]> {
  const encoded: Encoded[] = []
  for (let at = 0; at < rows.length; at += ROWS_PER_TURN) {
    if (at > 0) await new Promise(setImmediate)
    for (const row of rows.slice(at, at + ROWS_PER_TURN)) encoded.push(encode(row))
  }
  return encoded
}

/**
 * Of rows in sinks, given once, so that a row that is sent again is recognised; the store has perhaps not given its own
 * yet. Not made of the request's id, which clients choose.
 */
const ids = new WeakMap<RequestRow, string>()
const process_id = randomAlphanumerics(12)
let count = 0
const idOf = (row: RequestRow): string => ids.get(row) ?? ''

function jsonOf(row: RequestRow): string {
  const { feedback: _, ...view } = viewRow(row)
  return JSON.stringify({ ...view, id: idOf(row) })
}
