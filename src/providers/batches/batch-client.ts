/** The HTTP side of a vendor's batches: short JSON requests, uploads, and results that are read line by line. */
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { createLineSplitter } from '../../kit/json-lines.ts'
import { streamOf } from '../../kit/stream-of.ts'
import { GatewayError } from '../../spec/error.ts'
import { NOT_ACCEPTED } from '../orders/acceptance.ts'
import type { AdapterParts } from '../settings.ts'
import { type DirectAddress, directTo } from '../upstream/direct.ts'
import type { UpstreamResponse } from '../upstream/upstream-request.ts'
import type { VendorResult } from './batch-provider.ts'

export type BatchClientParts = Pick<AdapterParts, 'id' | 'transport'> & { address: DirectAddress }

type Sent = {
  method?: 'GET' | 'POST'
  /** Below the base URL, with its slash. */
  path: string
  query?: string
  headers?: Record<string, string>
  body?: JsonRecord | ReadableStream<Uint8Array> | undefined
  signal: AbortSignal
}

/** OpenAI's code where a model has no room for the tokens of another batch; Azure sends it with status 400. */
export const FULL = 'token_limit_exceeded'
/** An upload of 256 MB, and a file that the vendor has still to put together. */
const TRANSFER_SECONDS = 3_600
/** Of a line of results, which the route of the line limits further. */
const MOST_LINE_BYTES = 64 * 1024 * 1024
const utf8 = new TextDecoder()

export function createBatchClient({ id, transport, address }: BatchClientParts) {
  const { timeouts } = address
  const direct = directTo({ id, transport }, address)
  const patient = directTo(
    { id, transport },
    { ...address, timeouts: { ...timeouts, first_byte_seconds: TRANSFER_SECONDS, total_seconds: TRANSFER_SECONDS } },
  )

  /** Throws for a status that is not 2xx. */
  async function send({ method, path, query = '', headers = {}, body, signal }: Sent): Promise<UpstreamResponse> {
    const isStream = body instanceof ReadableStream
    const response = await (isStream ? patient : direct).send(
      {
        method: method ?? (body ? 'POST' : 'GET'),
        path,
        query,
        headers: { accept: 'application/json', ...(body && !isStream && JSON_TYPE), ...headers },
        body: body && !isStream ? new Blob([JSON.stringify(body)]).stream() : body,
        request_id: `batch_${crypto.randomUUID()}`,
      },
      signal,
    )
    if (response.status >= 200 && response.status < 300) return response
    const text = await response.excerpt()
    throw new GatewayError(
      response.status === 429 || text.includes(`"${FULL}"`) ? 'server_is_overloaded' : 'bad_upstream_response',
      `The upstream "${id}" answered a request for a batch with status ${response.status}${messageIn(text)}`,
      { upstream_status: response.status, ...(NOT_ACCEPTED.includes(response.status) && { accepted: 'no' as const }) },
    )
  }

  const notUnderstood = () =>
    new GatewayError(
      'bad_upstream_response',
      `The upstream "${id}" answered a request for a batch with something else.`,
    )

  return {
    send,
    notUnderstood,
    /** A text that the vendor must have sent, such as an id. */
    textIn(value: unknown): string {
      if (typeof value === 'string' && value !== '') return value
      throw notUnderstood()
    },
    async json(sent: Sent): Promise<JsonRecord> {
      const payload = parseJson(await (await send(sent)).text())
      if (isRecord(payload)) return payload
      throw notUnderstood()
    },
    /** The results in a file of JSON objects. `read` returns undefined for what is none. */
    async *results(sent: Sent, read: (line: JsonRecord) => VendorResult | undefined): AsyncGenerator<VendorResult> {
      const response = await send(sent)
      const lines = createLineSplitter({ max_line_bytes: MOST_LINE_BYTES })
      try {
        for (;;) {
          const piece = await response.read()
          for (const { bytes } of piece ? lines.push(piece) : lines.end()) {
            const value = parseJson(utf8.decode(bytes))
            const result = isRecord(value) ? read(value) : undefined
            if (!result) throw notUnderstood()
            yield result
          }
          if (!piece) return
        }
      } finally {
        response.drop()
      }
    },
  }
}
const JSON_TYPE = { 'content-type': 'application/json' }

function messageIn(text: string): string {
  const payload = parseJson(text)
  const error = isRecord(payload) ? (isRecord(payload.error) ? payload.error : payload) : {}
  const message = typeof error.message === 'string' ? error.message : ''
  return message === '' ? '.' : `: ${message.slice(0, 300)}`
}

/** Whether all that follows in a list is older: only of one that shows the newest first, as far as its times tell. */
export const endsBefore = (since: number, times: readonly number[]): boolean =>
  (times[0] ?? 0) > (times.at(-1) ?? 0) &&
  times.some((at) => at < since) &&
  times.every((at, index) => index === 0 || at <= (times[index - 1] as number))

/** Requests to paths below a base URL that are `accepted` may be lines. */
export const pathBelow =
  (base_url: string, accepted: RegExp) =>
  (url: string): string | undefined => {
    const path = url.startsWith(base_url) ? url.slice(base_url.length) : ''
    return accepted.test(path) ? path : undefined
  }

/** A form with one file, as a stream of known length. */
export async function formOf(
  fields: Record<string, string>,
  { name, bytes, body }: { name: string; bytes: number; body: ReadableStream<Uint8Array> },
) {
  const boundary = `gatehouse-${crypto.randomUUID()}`
  const texts = Object.entries(fields).map(
    ([field, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`,
  )
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/jsonl\r\n\r\n`
  const [head, end] = [Buffer.from(texts.join('') + file), Buffer.from(`\r\n--${boundary}--\r\n`)]
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + bytes + end.length),
    },
    body: joined(head, body, end),
  }
}

/** A stream between two others. */
export function joined(
  head: Uint8Array,
  body: ReadableStream<Uint8Array>,
  end: Uint8Array,
): ReadableStream<Uint8Array> {
  async function* pieces() {
    yield head
    yield* body
    yield end
  }
  return streamOf(pieces())
}
