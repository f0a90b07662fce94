/** Posts batches of JSON objects to an address of the operator: ClickHouse, Elasticsearch, Vector and the like. */
import { isRecord } from '../../kit/json.ts'

const BATCH_FORMATS = ['ndjson', 'json', 'elasticsearch'] as const
type BatchFormat = (typeof BATCH_FORMATS)[number]

export type HttpBatchSettings = {
  url: string
  /** `ndjson`: a line each. `json`: one array. `elasticsearch`: the lines of its bulk API. */
  format: BatchFormat
  headers: Readonly<Record<string, string>>
}

/** `id`: the same when it is sent again, so that a receiver that knows ids keeps one of it. */
type BatchItem = { id: string; json: string }

type HttpBatch = {
  /** The number of items that the receiver has refused for good. Rejects where the batch is to be sent again. */
  send(items: readonly BatchItem[], signal: AbortSignal): Promise<number>
}

/** The receiver's own words are not repeated: they may hold what was sent. */
const MAX_ANSWER_CHARACTERS = 4_000_000
const RETRIED = new Set([401, 403, 404, 408, 425, 429])

/** A redirect is a failure: what is sent goes to the address that the operator wrote, and nowhere else. */
export function createHttpBatch({ url, format, headers }: HttpBatchSettings): HttpBatch {
  const address = format === 'elasticsearch' ? withBriefAnswer(url) : url
  const content_type = format === 'json' ? 'application/json' : 'application/x-ndjson'
  return {
    async send(items, signal) {
      const response = await fetch(address, {
        method: 'POST',
        headers: { 'content-type': content_type, ...headers },
        body: bodyOf(items, format),
        redirect: 'manual',
        signal,
      })
      const { status } = response
      if (status >= 200 && status < 300) {
        if (format === 'elasticsearch') return refusedItems(await response.text(), items.length)
        await response.body?.cancel()
        return 0
      }
      await response.body?.cancel()
      // A receiver that will never take this batch must not hold up the next ones.
      if (status >= 400 && status < 500 && !RETRIED.has(status)) return items.length
      throw new Error(`The receiver answered ${status}.`)
    },
  }
}

/** Only what says which items were refused: an answer with reasons may be longer than the batch. */
function withBriefAnswer(text: string): string {
  const url = new URL(text)
  if (!url.searchParams.has('filter_path')) url.searchParams.set('filter_path', 'errors,items.*.status')
  return url.href
}

function bodyOf(items: readonly BatchItem[], format: BatchFormat): string {
  if (format === 'json') return `[${items.map(({ json }) => json).join(',')}]`
  if (format === 'ndjson') return items.map(({ json }) => `${json}\n`).join('')
  return items.map(({ id, json }) => `${JSON.stringify({ create: { _id: id } })}\n${json}\n`).join('')
}

function parsed(text: string): { errors?: boolean; items?: { create?: { status?: number } }[] } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * The bulk API answers 200 although items were refused. A conflict says that the item is there already; where the receiver
 * was too busy for any, the batch is sent again.
 * https://www.elastic.co/guide/en/elasticsearch/reference/current/docs-bulk.html
 */
function refusedItems(text: string, sent: number): number {
  const answer = text.length > MAX_ANSWER_CHARACTERS ? undefined : parsed(text)
  // Not the answer of a bulk API: nothing says that it has taken any.
  if (!answer) return sent
  const { errors, items = [] } = answer
  if (!errors) return 0
  const statuses = items.map(({ create }) => create?.status ?? 0)
  if (statuses.some((status) => status === 429 || status >= 500)) throw new Error('The receiver was too busy.')
  return statuses.filter((status) => status >= 400 && status !== 409).length
}
