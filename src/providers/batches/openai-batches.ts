/**
 * Batches in the form of OpenAI's API, which Groq has too, and in those of Azure OpenAI, Mistral and Together: a file of
 * lines is uploaded, and a batch is created of it. No two uploads have the same id, so a batch is found by that of its file.
 */
import { asRecord, isRecord, type JsonRecord, memberOf, parseJson } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import { type BatchClientParts, createBatchClient, endsBefore, FULL, formOf, pathBelow } from './batch-client.ts'
import type { BatchLine, BatchProvider, BatchState, VendorResult } from './batch-provider.ts'

/** How a vendor differs, each read on 2026-11-28. */
type Dialect = {
  most: { lines: number; bytes: number }
  upload: string
  fields(mark: string): Record<string, string>
  batches: string
  create(order: { file: string; url: string; model: string; mark: string }): JsonRecord
  /** Paths below the base URL. */
  accepts: RegExp
  /** A line without its method and URL; an empty list is null. */
  is_short?: true
  /** An uploaded file is processed before a batch can be created of it, and a failed batch has files. */
  is_processed?: true
  input(batch: JsonRecord): unknown
  names: { output: string; error: string }
}

const MEGABYTE = 1_000_000
const OPENAI: Dialect = {
  most: { lines: 50_000, bytes: 200 * MEGABYTE },
  upload: '/files',
  fields: () => ({ purpose: 'batch' }),
  batches: '/batches',
  create: ({ file, url, mark }) => ({
    input_file_id: file,
    endpoint: url,
    completion_window: '24h',
    metadata: { gatehouse_order: mark },
  }),
  input: ({ input_file_id }) => input_file_id,
  names: { output: 'output_file_id', error: 'error_file_id' },
  accepts: /^\/(chat\/completions|responses|embeddings|completions|moderations)$/,
}

/** The least that Azure takes; without it a resource may have 500 files in place of 10,000. */
const KEPT = { seconds: 1_209_600, anchor: 'created_at' }
/**
 * https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch. The model of each line is the name of one deployment. Its batches
 * are below `/openai/v1`, whatever version of the API its calls have.
 */
const AZURE: Dialect = {
  ...OPENAI,
  most: { lines: 100_000, bytes: 200 * MEGABYTE },
  fields: () => ({
    purpose: 'batch',
    'expires_after.seconds': String(KEPT.seconds),
    'expires_after.anchor': KEPT.anchor,
  }),
  create: (order) => ({ ...OPENAI.create(order), output_expires_after: KEPT }),
  is_processed: true,
  accepts: /^\/(chat\/completions|responses)$/,
}
const AZURE_HOST = /\.(openai|cognitiveservices|services\.ai)\.azure\.(com|us)$/

/** By the host of the base URL. */
const DIALECTS: Record<string, Dialect> = {
  // https://docs.mistral.ai/capabilities/batch
  'api.mistral.ai': {
    ...OPENAI,
    batches: '/batch/jobs',
    create: ({ file, url, model, mark }) => ({
      input_files: [file],
      endpoint: url,
      model,
      timeout_hours: 24,
      metadata: { gatehouse_order: mark },
    }),
    is_short: true,
    input: ({ input_files }) => (Array.isArray(input_files) ? input_files[0] : undefined),
    names: { output: 'output_file', error: 'error_file' },
    accepts: /^\/(chat\/completions|embeddings|moderations)$/,
  },
  // https://console.groq.com/docs/batch
  'api.groq.com': { ...OPENAI, accepts: /^\/chat\/completions$/ },
  // https://docs.together.ai/docs/batch-inference
  'api.together.xyz': {
    ...OPENAI,
    most: { lines: 50_000, bytes: 100 * MEGABYTE },
    upload: '/files/upload',
    fields: (mark) => ({ purpose: 'batch-api', file_name: `${mark}.jsonl` }),
    create: ({ file, url }) => ({ input_file_id: file, endpoint: url, completion_window: '24h' }),
    is_short: true,
    accepts: /^\/(chat\/)?completions$/,
  },
}

/** They show the metadata of a batch in their lists. Others that speak this API may drop it. */
const MARKED = ['api.openai.com', 'api.mistral.ai', 'api.groq.com']
const AZURE_VERSION = /(?<=\/openai)(\/v1|\/deployments\/[^/]+)(?=\/)/
const FAILED = ['failed']
const ENDED = ['completed', 'success', 'expired', 'timeout_exceeded', 'cancelled', ...FAILED]
const LISTED = 100
const MOST_PAGES = 20

/** `base_url` decides the dialect. `isAzure`: it is that of an Azure resource, before the version of its API. */
export function createOpenAiBatches({ isAzure, ...parts }: BatchClientParts & { isAzure?: true }): BatchProvider {
  const { base_url } = parts.address
  const client = createBatchClient(
    isAzure ? { ...parts, address: { ...parts.address, base_url: `${base_url}/v1` } } : parts,
  )
  const { hostname } = new URL(base_url)
  const dialect = isAzure || AZURE_HOST.test(hostname) ? AZURE : (DIALECTS[hostname] ?? OPENAI)
  const isMarked = dialect === AZURE || MARKED.includes(hostname)
  const pathIn = pathBelow(base_url, dialect.accepts)
  const { batches, names } = dialect
  /** Lines and batches name the path of the API, with its version, whatever the base URL is. */
  const urlOf = (path: string) => `/v1${path}`
  /** Together puts it into a member when it is created. */
  const batchIn = (payload: JsonRecord): JsonRecord => (isRecord(payload.job) ? payload.job : payload)
  const hasNone = (batch: JsonRecord) =>
    FAILED.includes(statusOf(batch)) && (dialect.is_processed || (!batch[names.output] && !batch[names.error]))
  /** OpenAI and Azure count the tokens of a batch once they have created it, and fail it where others have the room. */
  const isFull = (batch: JsonRecord) => hasNone(batch) && problemIn(batch).code === FULL
  const one = async (id: string, signal: AbortSignal) =>
    batchIn(await client.json({ path: `${batches}/${encodeURIComponent(id)}`, signal }))

  async function* listed(signal: AbortSignal): AsyncGenerator<JsonRecord[]> {
    let last = ''
    for (let page = 0; page < MOST_PAGES; page++) {
      const isPaged = batches !== '/batches' // Mistral's pages have numbers
      const query = isPaged ? `?page=${page}&page_size=${LISTED}` : `?limit=${LISTED}${last && `&after=${last}`}`
      const response = await client.send({ path: batches, query, signal })
      const payload = parseJson(await response.text())
      // Together's list is a bare one.
      const data = Array.isArray(payload) ? payload : memberOf(payload, 'data')
      if (dialect.is_short && (payload === null || data === null)) return
      if (!Array.isArray(data)) throw client.notUnderstood()
      const found = data.filter(isRecord)
      yield found
      const id = found.at(-1)?.id
      const { has_more = found.length === LISTED } = isRecord(payload) ? payload : { has_more: false }
      if (has_more !== true || typeof id !== 'string') return
      last = encodeURIComponent(id)
    }
    throw client.notUnderstood() // so many since: nothing is known of one that is missing
  }

  async function* resultsIn(file: unknown, signal: AbortSignal): AsyncGenerator<VendorResult> {
    if (typeof file !== 'string' || file === '') return
    yield* client.results({ path: `/files/${encodeURIComponent(file)}/content`, signal }, resultOf)
  }

  /** Nothing was created where a file is not ready, or never will be. */
  async function assertProcessed(file: string, signal: AbortSignal): Promise<void> {
    const { status } = await client.json({ path: `/files/${encodeURIComponent(file)}`, signal })
    if (status === undefined || status === 'processed') return
    throw new GatewayError(
      status === 'error' ? 'bad_upstream_response' : 'server_is_overloaded',
      `The file of a batch has the status ${JSON.stringify(status)} at the upstream "${parts.id}".`,
      { accepted: 'no' },
    )
  }

  return {
    // Azure's calls name their version, and some their deployment, which the body names too.
    pathOf: (url) => pathIn(isAzure ? url.replace(/\?.*$/, '').replace(AZURE_VERSION, '') : url),
    most: dialect.most,
    line({ id, path, body }: BatchLine) {
      const rest = dialect.is_short ? '' : `"method":"POST","url":${JSON.stringify(urlOf(path))},`
      return `{"custom_id":${JSON.stringify(id)},${rest}"body":${body}}`
    },
    async upload({ mark, bytes }, lines, signal) {
      const form = await formOf(dialect.fields(mark), { name: `${mark}.jsonl`, bytes, body: await lines() })
      return client.textIn((await client.json({ ...form, path: dialect.upload, signal })).id)
    },
    async create({ mark, model, path }, file, _, signal) {
      if (dialect.is_processed) await assertProcessed(String(file), signal)
      const body = dialect.create({ file: String(file), url: urlOf(path), model, mark })
      return client.textIn(batchIn(await client.json({ path: batches, body, signal })).id)
    },
    async find({ mark, uploaded, until = Number.POSITIVE_INFINITY }, since, signal) {
      const isIt = (batch: JsonRecord) =>
        (uploaded === undefined ? markIn(batch) === mark : dialect.input(batch) === uploaded) && !isFull(batch)
      let isHidden = false
      for await (const page of listed(signal)) {
        const found = page.find(isIt)
        if (found) return { id: client.textIn(found.id) }
        const isOther = (batch: JsonRecord) => createdAt(batch) < since || createdAt(batch) > until
        isHidden ||= page.some((batch) => !isOther(batch) && typeof markIn(batch) !== 'string')
        if (endsBefore(since, page.map(createdAt))) break // Azure documents no order of its list
      }
      return isHidden && uploaded === undefined && !isMarked ? 'hidden' : 'absent'
    },
    async state(id, signal): Promise<BatchState> {
      const batch = await one(id, signal)
      client.textIn(batch.status)
      if (!ENDED.includes(statusOf(batch))) return { is: 'running' }
      return {
        is: 'ended',
        ...(hasNone(batch) && { problem: problemIn(batch).message, ...(isFull(batch) && { is_full: true as const }) }),
      }
    },
    async cancel(id, signal) {
      await client.send({ method: 'POST', path: `${batches}/${encodeURIComponent(id)}/cancel`, signal })
    },
    async *results(id, signal) {
      const batch = await one(id, signal)
      yield* resultsIn(batch[names.output], signal)
      yield* resultsIn(batch[names.error], signal)
    },
  }
}

/** In unix seconds; Together writes a date. Not a number: it is not known. */
const createdAt = ({ created_at: at }: JsonRecord): number =>
  typeof at === 'number' ? at : Date.parse(String(at)) / 1000

/** Of the vendor's words that a client reads, as of an error. */
const MOST_CHARACTERS = 300

const markIn = ({ metadata }: JsonRecord): unknown => isRecord(metadata) && metadata.gatehouse_order

function problemIn({ errors, error }: JsonRecord): { code: unknown; message: string } {
  const list = isRecord(errors) ? errors.data : errors
  const { code, message = error } = (Array.isArray(list) ? list.find(isRecord) : undefined) ?? {}
  return { code, message: typeof message === 'string' ? message.slice(0, MOST_CHARACTERS) : 'The batch failed.' }
}

/** Azure capitalizes some. */
const statusOf = ({ status }: JsonRecord): string => String(status).toLowerCase()

const NOT_EXECUTED: Record<string, 'expired' | 'canceled'> = { batch_expired: 'expired', batch_cancelled: 'canceled' }

function resultOf({ custom_id: id, response, error }: JsonRecord): VendorResult | undefined {
  if (typeof id !== 'string') return undefined
  if (isRecord(response) && response.body !== undefined && response.body !== null) {
    const status = typeof response.status_code === 'number' ? response.status_code : 200
    return { id, is: 'answered', status, body: JSON.stringify(response.body) }
  }
  const { code, message } = asRecord(error)
  const why = NOT_EXECUTED[String(code)] ?? 'errored'
  return {
    id,
    is: 'not executed',
    why,
    message: typeof message === 'string' ? message : 'The provider did not execute it.',
  }
}
