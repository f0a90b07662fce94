/**
 * Batches of Google's Gemini API (https://ai.google.dev/gemini-api/docs/batch-api, https://ai.google.dev/api/files, read on
 * 2026-11-28): a file of lines is uploaded, and a batch with a name of ours is created of it.
 */
import { asRecord, isRecord, type JsonRecord, memberOf, recordsIn } from '../../kit/json.ts'
import { type BatchClientParts, createBatchClient, endsBefore, pathBelow } from './batch-client.ts'
import type { BatchProvider, BatchState, VendorResult } from './batch-provider.ts'

const LISTED = 100
const MOST_PAGES = 200
const ENDED = /_(SUCCEEDED|FAILED|CANCELLED|EXPIRED|PARTIALLY_SUCCEEDED)$/
/** https://cloud.google.com/apis/design/errors#handling_errors */
const STATUSES: Record<number, number> = {
  3: 400,
  4: 504,
  5: 404,
  7: 403,
  8: 429,
  9: 400,
  11: 400,
  13: 500,
  14: 503,
  16: 401,
}

export function createContentgenBatches(parts: BatchClientParts): BatchProvider {
  const { address } = parts
  const client = createBatchClient(parts)
  const { origin, pathname } = new URL(address.base_url)
  /** Uploads and downloads have the same path below another one. */
  const transfers = createBatchClient({ ...parts, address: { ...address, base_url: origin } })

  const stateIn = ({ metadata }: JsonRecord): string => String(isRecord(metadata) ? metadata.state : '')
  const nameIn = (value: unknown): string => {
    const name = memberOf(value, 'name')
    if (typeof name === 'string' && /^[\w/-]+$/.test(name)) return name
    throw client.notUnderstood()
  }

  return {
    pathOf: pathBelow(address.base_url, /^\/models\/[^/]+:generateContent$/),
    most: { lines: 100_000, bytes: 2_000_000_000 },
    line: ({ id, body }) => `{"key":${JSON.stringify(id)},"request":${body}}`,
    async upload({ mark, bytes }, lines, signal) {
      const started = await transfers.send({
        path: `/upload${pathname}/files`,
        headers: {
          'x-goog-upload-protocol': 'resumable',
          'x-goog-upload-command': 'start',
          'x-goog-upload-header-content-length': String(bytes),
          'x-goog-upload-header-content-type': 'application/jsonl',
        },
        body: { file: { display_name: mark } },
        signal,
      })
      started.drop()
      const to = URL.parse(started.headers.get('x-goog-upload-url') ?? '')
      if (to?.origin !== origin) throw client.notUnderstood()
      const headers = {
        'content-length': String(bytes),
        'x-goog-upload-offset': '0',
        'x-goog-upload-command': 'upload, finalize',
      }
      const sent = { path: to.pathname, query: to.search, headers, body: await lines(), signal }
      return nameIn((await transfers.json(sent)).file)
    },
    async create({ mark, model }, file, _, signal) {
      const body = { batch: { display_name: mark, input_config: { file_name: String(file) } } }
      return nameIn(await client.json({ path: `/models/${model}:batchGenerateContent`, body, signal }))
    },
    async find({ mark }, since, signal) {
      for (let page = 0, token = ''; page < MOST_PAGES; page++) {
        const query = `?pageSize=${LISTED}${token}`
        const { operations, nextPageToken } = await client.json({ path: '/batches', query, signal })
        const listed = recordsIn(operations)
        const found = listed.find(({ metadata }) => isRecord(metadata) && metadata.displayName === mark)
        if (found) return { id: nameIn(found) }
        if (endsBefore(since, listed.map(createdAt))) return 'absent'
        if (typeof nextPageToken !== 'string' || nextPageToken === '') return 'absent'
        token = `&pageToken=${encodeURIComponent(nextPageToken)}`
      }
      throw client.notUnderstood()
    },
    async state(id, signal): Promise<BatchState> {
      const operation = await client.json({ path: `/${id}`, signal })
      if (operation.done !== true && !ENDED.test(stateIn(operation))) return { is: 'running' }
      const { error } = operation
      if (!isRecord(error) || responsesIn(operation) !== undefined) return { is: 'ended' }
      return { is: 'ended', problem: String(error.message ?? 'The batch failed.') }
    },
    async cancel(id, signal) {
      await client.send({ method: 'POST', path: `/${id}:cancel`, signal })
    },
    async *results(id, signal) {
      const file = responsesIn(await client.json({ path: `/${id}`, signal }))
      if (file === undefined) return
      const path = `/download${pathname}/${nameIn({ name: file })}:download`
      yield* transfers.results({ path, query: '?alt=media', signal }, resultOf)
    },
  }
}

/** In unix seconds; not a number: it is not known. */
const createdAt = ({ metadata }: JsonRecord): number =>
  Date.parse(String(isRecord(metadata) ? metadata.createTime : '')) / 1000

function responsesIn({ response, metadata }: JsonRecord): unknown {
  const output = asRecord(memberOf(metadata, 'output'))
  return memberOf(response, 'responsesFile') ?? output.responsesFile
}

function resultOf({ key: id, response, error }: JsonRecord): VendorResult | undefined {
  if (typeof id !== 'string') return undefined
  if (isRecord(response)) return { id, is: 'answered', status: 200, body: JSON.stringify(response) }
  if (!isRecord(error)) return undefined
  const code = Number(error.code)
  return { id, is: 'answered', status: STATUSES[code] ?? (code >= 400 ? code : 500), body: JSON.stringify({ error }) }
}
