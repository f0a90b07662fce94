/** Receives the requests of a message batch: each is checked and stored as it arrives, and none is kept in memory. */
import type { Clock } from '../../kit/clock.ts'
import { streamOf } from '../../kit/stream-of.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { FileStore } from '../../outputs/outputs.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { createLineCheck } from './check-line.ts'
import { MESSAGES_ENDPOINT, MOST, MOST_LINE_BYTES } from './endpoints.ts'
import { createSplitter } from './split-requests.ts'
import { inputKeyOf } from './store-parts.ts'

type Receiving = {
  batch_id: string
  caller: Caller
  body: ReadableStream<Uint8Array> | null
  signal: AbortSignal
  /** How long the next bytes may take to arrive. */
  pause_seconds: number
}
type Parts = { fileStore: FileStore; catalogue: Pick<Catalogue, 'require'>; clock: Clock }

/** The body beside its requests, and how many these are. Throws GatewayError for the first problem; nothing is stored then. */
export async function receiveRequests(
  { fileStore, catalogue, clock }: Parts,
  { batch_id, caller, body, signal, pause_seconds }: Receiving,
): Promise<{ rest: Record<string, unknown>; requests: number }> {
  const key = inputKeyOf(batch_id)
  const splitter = createSplitter({ max_request_bytes: MOST_LINE_BYTES })
  const lines = createLineCheck({ api: 'anthropic', endpoint: MESSAGES_ENDPOINT, caller, catalogue })
  const { lines: most_lines, bytes: most_bytes } = MOST.anthropic
  let line = 0
  let received = 0
  let fault: unknown
  let whole: { rest: Record<string, unknown>; requests: number } | undefined

  async function* jsonl(): AsyncGenerator<Uint8Array> {
    for await (const piece of arriving(body, { clock, pause_seconds })) {
      received += piece.length
      if (received > most_bytes)
        throw new GatewayError('request_too_large', `A batch may have at most ${most_bytes} bytes.`)
      const texts: Uint8Array[] = []
      for (const bytes of splitter.push(piece)) {
        if (++line > most_lines)
          throw new GatewayError('request_too_large', `A batch may have at most ${most_lines} requests.`)
        const checked = lines.check({ line, offset: 0, length: bytes.length, bytes })
        if (typeof checked !== 'string') throw problemOf(line - 1, checked)
        texts.push(bytes, NEWLINE)
      }
      if (texts.length > 0) yield Buffer.concat(texts)
    }
    whole = splitter.end()
    if (whole.requests > 0) return
    const code = 'requests' in whole.rest ? 'invalid_value' : 'missing_required_parameter'
    throw new GatewayError(code, '"requests" must be a list of at least one request.', { param: 'requests' })
  }

  async function* watched() {
    try {
      yield* jsonl()
    } catch (thrown) {
      fault = thrown
      throw thrown
    }
  }

  try {
    await fileStore.write(key, { content_type: 'application/jsonl', body: streamOf(watched()) }, signal)
  } catch (thrown) {
    throw fault ?? thrown
  }
  if (!whole) throw new Error('The body was not read to its end.')
  return whole
}

const NEWLINE = new Uint8Array([0x0a])

function problemOf(index: number, { code, message, param }: { code: string; message: string; param: string | null }) {
  const place = param === null ? `requests[${index}]` : `requests[${index}].${param}`
  const known = ['missing_required_parameter', 'invalid_type', 'model_not_found', 'model_not_allowed'] as const
  const found = known.find((one) => one === code) ?? 'invalid_value'
  const text = param === null ? message : message.replace(`"${param}"`, `"${place}"`)
  return new GatewayError(found, text === message ? `"${place}": ${message}` : text, { param: place })
}

/** The pieces of a body. Throws request_timeout where none arrives for too long. */
async function* arriving(
  body: ReadableStream<Uint8Array> | null,
  { clock, pause_seconds }: { clock: Clock; pause_seconds: number },
): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  try {
    while (reader) {
      const { promise, reject } = Promise.withResolvers<never>()
      const late = () =>
        reject(new GatewayError('request_timeout', `No bytes of the body arrived within ${pause_seconds} s.`))
      const cancel = clock.after(pause_seconds * 1000, late)
      try {
        const { done, value } = await Promise.race([reader.read(), promise])
        if (done) return
        yield value
      } finally {
        cancel()
      }
    }
  } finally {
    await reader?.cancel().catch(() => {})
  }
}
