/**
 * Batches in the form of Anthropic's API (https://platform.claude.com/docs/en/api/creating-message-batches, read on 2026-11-28).
 * They have no name and no metadata: one that may have been created before a crash is recognised by the ids of its lines,
 * which it shows once it has ended.
 */
import { asRecord, isRecord, type JsonRecord, memberOf } from '../../kit/json.ts'
import { streamOf } from '../../kit/stream-of.ts'
import { type BatchClientParts, createBatchClient, joined, pathBelow } from './batch-client.ts'
import type { BatchProvider, VendorResult } from './batch-provider.ts'

const PATH = '/v1/messages/batches'
const LISTED = 100
const MOST_PAGES = 20
const NEWLINE = 0x0a
const COMMA = 0x2c
/** Of the line breaks and brackets beside the lines. */
const [HEAD, END] = [Buffer.from('{"requests":['), Buffer.from(']}')]

const STATUSES: Record<string, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
}

export function createMessagesBatches(parts: BatchClientParts): BatchProvider {
  const client = createBatchClient(parts)
  const pathOf = (id: string, rest = '') => `${PATH}/${encodeURIComponent(id)}${rest}`
  const one = (id: string, signal: AbortSignal) => client.json({ path: pathOf(id), signal })

  /** Those that may have been created since, the newest first. */
  async function listed(since: number, signal: AbortSignal): Promise<JsonRecord[]> {
    const found: JsonRecord[] = []
    for (let page = 0, after = ''; page < MOST_PAGES; page++) {
      const { data, has_more, last_id } = await client.json({ path: PATH, query: `?limit=${LISTED}${after}`, signal })
      if (!Array.isArray(data)) throw client.notUnderstood()
      const batches = data.filter(isRecord)
      const recent = batches.filter(({ created_at }) => Date.parse(String(created_at)) / 1000 >= since)
      found.push(...recent)
      if (recent.length < batches.length || has_more !== true || typeof last_id !== 'string') return found
      after = `&after_id=${encodeURIComponent(last_id)}`
    }
    throw client.notUnderstood()
  }

  const results = (id: string, signal: AbortSignal) =>
    client.results({ path: pathOf(id, '/results'), signal }, resultOf)

  return {
    pathOf: pathBelow(parts.address.base_url, /^\/v1\/messages$/),
    most: { lines: 100_000, bytes: 256 * 1024 * 1024 },
    line: ({ id, body }) => `{"custom_id":${JSON.stringify(id)},"params":${body}}`,
    upload: async () => null,
    async create({ bytes }, _, lines, signal) {
      const headers = {
        'content-type': 'application/json',
        'content-length': String(HEAD.length + bytes - 1 + END.length),
      }
      const body = joined(HEAD, streamOf(asList(await lines())), END)
      return client.textIn((await client.json({ path: PATH, headers, body, signal })).id)
    },
    async find({ mark, lines, until = Number.POSITIVE_INFINITY }, since, signal) {
      let isUnsure = false
      for (const batch of await listed(since, signal)) {
        const { request_counts: counts, processing_status, created_at } = batch
        if (Date.parse(String(created_at)) / 1000 > until) continue
        const total = isRecord(counts)
          ? Object.values(counts).reduce<number>((sum, count) => sum + Number(count), 0)
          : lines
        if (lines !== undefined && total !== lines) continue
        const id = client.textIn(batch.id)
        if (processing_status !== 'ended') isUnsure = true
        else
          for await (const result of results(id, signal))
            if (result.id.startsWith(mark)) return { id }
            else break
      }
      return isUnsure ? 'unsure' : 'absent'
    },
    async state(id, signal) {
      return { is: (await one(id, signal)).processing_status === 'ended' ? 'ended' : 'running' }
    },
    async cancel(id, signal) {
      await client.send({ method: 'POST', path: pathOf(id, '/cancel'), signal })
    },
    results,
  }
}

/** Lines become the elements of a list: in JSON no text contains a line break. */
async function* asList(lines: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isBroken = false
  for await (const piece of lines) {
    if (piece.length === 0) continue
    const bytes = Buffer.from(piece)
    const endsLine = bytes.at(-1) === NEWLINE
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) bytes[at] = COMMA
    if (isBroken) yield Buffer.of(COMMA)
    isBroken = endsLine
    yield endsLine ? bytes.subarray(0, -1) : bytes
  }
}

function resultOf({ custom_id: id, result }: JsonRecord): VendorResult | undefined {
  if (typeof id !== 'string' || !isRecord(result)) return undefined
  const { type, message, error } = result
  if (type === 'succeeded') return { id, is: 'answered', status: 200, body: JSON.stringify(message) }
  if (type !== 'errored') {
    const why = type === 'canceled' ? 'canceled' : 'expired'
    return { id, is: 'not executed', why, message: 'The provider did not execute it.' }
  }
  const inner = asRecord(memberOf(error, 'error'))
  return { id, is: 'answered', status: STATUSES[String(inner.type)] ?? 500, body: JSON.stringify(error) }
}
