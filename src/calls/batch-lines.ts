/** Checks the lines of a batch, while their file is uploaded or received and before any is called. */
import { isRecord } from '../kit/json.ts'
import { createLineSplitter, type RawLine, withoutLongStrings } from '../kit/json-lines.ts'
import { streamOf } from '../kit/stream-of.ts'
import { createTextSet } from '../kit/text-set.ts'
import type { Catalogue } from '../models/catalogue.ts'
import type { FileStore } from '../outputs/outputs.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { BatchApi, BatchProblem } from '../store/batches/batch-store.ts'
import type { FileRow } from '../store/files/file-row.ts'

export const BATCH_ENDPOINTS = {
  '/v1/chat/completions': 'chatcompat',
  '/v1/responses': 'chatcompat-response',
  '/v1/embeddings': 'embeddings',
  '/v1/completions': 'chatcompat',
  '/v1/moderations': 'moderations',
  '/v1/images/generations': 'image-generation',
} as const satisfies Record<string, EndpointFamily>

export const MESSAGES_ENDPOINT = '/v1/messages'

export const familyOf = (endpoint: string): EndpointFamily =>
  endpoint === MESSAGES_ENDPOINT ? 'messages-compat' : BATCH_ENDPOINTS[endpoint as keyof typeof BATCH_ENDPOINTS]

/** The model of this name, or why a line may not call it. */
export function modelOf({ catalogue, caller }: UploadParts, endpoint: string, name: string | undefined) {
  try {
    return catalogue.require(name, familyOf(endpoint), caller).model
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown
    throw thrown
  }
}

/** As the vendors document them. */
const MOST: Record<BatchApi, { lines: number; custom_id: RegExp; rule: string }> = {
  openai: {
    lines: 50_000,
    custom_id: /^[^\p{Cc}]{1,128}$/u,
    rule: 'a string of 1 to 128 characters',
  },
  anthropic: {
    lines: 100_000,
    custom_id: /^[a-zA-Z0-9_-]{1,64}$/,
    rule: '1 to 64 letters, digits, "_" and "-"',
  },
}
/** The largest body of one call: that of its route is checked when it is called. */
export const MOST_LINE_BYTES = 32 * 1024 * 1024
/** What is split of the body of a message batch. */
export const MESSAGES_BODY = { member: 'requests', most_element_bytes: MOST_LINE_BYTES, max_bytes: 256 * 1024 * 1024 }

type Problem = Omit<BatchProblem, 'line'>
export type CheckParts = {
  api: BatchApi
  /** Absent: that of the first line that names one. */
  endpoint?: string
  caller: Caller
  catalogue: Pick<Catalogue, 'require'>
  /** False: models were checked before. Default true. */
  checks_models?: boolean
}

/** As stored with a file. `model`: where all lines name the same. `refused`: the first models that were; null: none was named. */
type Checked = {
  total: number
  problems: BatchProblem[]
  model: string | undefined
  /** Whether a batch of its vendor executes lines of one of the models. */
  has_native: boolean
  endpoint: string | undefined
  refused: (string | null)[]
}

export function createLineCheck({ api, endpoint: given, caller, catalogue, checks_models = true }: CheckParts) {
  const problems: BatchProblem[] = []
  let total = 0
  const seen = createTextSet()
  const refused = new Set<string | null>()
  let endpoint = given
  let hasNative = false
  /** What is wrong with each model that was named; undefined: nothing. */
  const models = new Map<string | undefined, Problem | undefined>()
  const body_name = api === 'openai' ? 'body' : 'params'

  function modelProblem(model: string | undefined): Problem | undefined {
    const found = modelOf({ catalogue, caller }, endpoint ?? '', model)
    if (found instanceof GatewayError) {
      if (!checks_models) return undefined
      if (refused.size < MOST_PROBLEMS) refused.add(model?.slice(0, MOST_NAME_CHARACTERS) ?? null)
      return { code: found.code, message: found.message, param: `${body_name}.model` }
    }
    if (found.has_native_batches) hasNative = true
    return undefined
  }

  function bodyProblem(body: Record<string, unknown>): Problem | undefined {
    for (const name of ['stream', 'background'] as const)
      if (body[name] === true)
        return invalid(`"${body_name}.${name}" must not be true in a batch.`, `${body_name}.${name}`)
    const { model = undefined } = body
    if (model === undefined || model === null) {
      // Only moderations have a default model.
      if (endpoint !== '/v1/moderations') return missing(`${body_name}.model`)
    } else if (typeof model !== 'string') {
      return { code: 'invalid_type', message: `"${body_name}.model" must be a string.`, param: `${body_name}.model` }
    }
    const name = typeof model === 'string' ? model : undefined
    if (!models.has(name)) {
      if (models.size >= MOST_MODELS) models.clear()
      models.set(name, modelProblem(name))
    }
    return models.get(name)
  }

  function idProblem(custom_id: unknown): Problem | undefined {
    if (custom_id === undefined || custom_id === null) return missing('custom_id')
    if (typeof custom_id !== 'string' || !MOST[api].custom_id.test(custom_id))
      return invalid(`"custom_id" must be ${MOST[api].rule}.`, 'custom_id')
    if (seen.add(custom_id)) return undefined
    const message = `The custom_id "${custom_id}" stands in an earlier line too.`
    return { code: 'duplicate_custom_id', message, param: 'custom_id' }
  }

  function targetProblem({ method, url }: Record<string, unknown>): Problem | undefined {
    if (method === undefined) return missing('method')
    if (method !== 'POST') return invalid('"method" must be "POST".', 'method')
    if (url === undefined) return missing('url')
    if (typeof url === 'string' && Object.hasOwn(BATCH_ENDPOINTS, url)) endpoint ??= url
    if (endpoint === undefined)
      return invalid(`"url" must be one of ${Object.keys(BATCH_ENDPOINTS).join(', ')}.`, 'url')
    if (url === endpoint) return undefined
    const message = `"url" must be ${endpoint}, the endpoint of the batch.`
    return { code: 'url_mismatch', message, param: 'url' }
  }

  /** The custom_id of the line, or what is wrong with it. */
  function custom_id({ bytes, length }: RawLine): string | Problem {
    if (length > MOST_LINE_BYTES)
      return { code: 'request_too_large', message: `A line may have at most ${MOST_LINE_BYTES} bytes.`, param: null }
    const value = parse(bytes)
    if (!isRecord(value)) return { code: 'invalid_json_line', message: 'This line is not a JSON object.', param: null }
    const body = value[body_name]
    const problem =
      idProblem(value.custom_id) ??
      (api === 'openai' ? targetProblem(value) : undefined) ??
      (body === undefined ? missing(body_name) : undefined) ??
      (isRecord(body) ? bodyProblem(body) : invalid(`"${body_name}" must be an object.`, body_name))
    return problem ?? String(value.custom_id)
  }

  return {
    /** The custom_id of the line; undefined: something is wrong with it. */
    check(raw: RawLine): string | undefined {
      if (++total > MOST[api].lines) return undefined
      const checked = custom_id(raw)
      if (typeof checked === 'string') return checked
      const message = checked.message.slice(0, MOST_MESSAGE_CHARACTERS)
      if (problems.length < MOST_PROBLEMS) problems.push({ ...checked, message, line: raw.line })
      return undefined
    },
    /** What was found in the lines so far: the first problems, or why there are no lines to execute. */
    found(): Checked {
      const isTooLong = total > MOST[api].lines
      const whole = total === 0 ? NO_LINES : isTooLong ? tooMany(api) : undefined
      const [first] = models.keys()
      return {
        total: whole ? 0 : total,
        problems: whole ? [whole] : problems,
        model: models.size === 1 ? first : undefined,
        has_native: hasNative,
        endpoint: whole ? undefined : endpoint,
        refused: whole ? [] : [...refused],
      }
    },
  }
}

const MOST_MODELS = 1_000
/** No model has a longer name. */
const MOST_NAME_CHARACTERS = 300

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(withoutLongStrings(bytes) ?? '')
  } catch {
    return undefined
  }
}

const missing = (param: string): Problem => ({
  code: 'missing_required_parameter',
  message: `"${param}" is required.`,
  param,
})
const invalid = (message: string, param: string): Problem => ({ code: 'invalid_value', message, param })

/** As OpenAI documents `errors`: the first ones. */
const MOST_PROBLEMS = 100
const MOST_MESSAGE_CHARACTERS = 500

const tooMany = (api: BatchApi): BatchProblem => ({
  code: 'too_many_tasks',
  message: `A batch may have at most ${MOST[api].lines} lines.`,
  param: null,
  line: null,
})
const NO_LINES: BatchProblem = { code: 'empty_file', message: 'The input has no lines.', param: null, line: null }

type UploadParts = Pick<CheckParts, 'caller' | 'catalogue'>

export function createUploadCheck(parts: UploadParts) {
  const splitter = createLineSplitter({ max_line_bytes: MOST_LINE_BYTES })
  const lines = createLineCheck({ ...parts, api: 'openai' })
  return {
    push: (piece: Uint8Array) => splitter.push(piece).forEach(lines.check),
    /** What is stored of the problems; null: there are none. */
    end(): string | null {
      splitter.end().forEach(lines.check)
      const { total, problems, endpoint, refused } = lines.found()
      return problems.length > 0 ? JSON.stringify({ total, problems, endpoint, refused }) : null
    },
  }
}

/** What is known to be wrong with a batch of this file; undefined: nothing, so that it is read. */
export function knownProblems(
  { problems }: Pick<FileRow, 'problems'>,
  { endpoint, ...parts }: UploadParts & { endpoint: string },
): Pick<Checked, 'total' | 'problems'> | undefined {
  if (problems === null) return undefined
  // They are those of a batch with this endpoint, or with any, while all these models are refused.
  const found: Checked = JSON.parse(problems)
  if (found.endpoint !== undefined && found.endpoint !== endpoint) return undefined
  const isServed = (model: string | null) => !(modelOf(parts, endpoint, model ?? undefined) instanceof GatewayError)
  return found.refused.some(isServed) ? undefined : found
}

type Receiving = {
  /** Where they are stored, as JSONL. */
  key: string
  caller: Caller
  /** Those that have arrived together; at the end the rest of the body. */
  requests: AsyncGenerator<Uint8Array[], Record<string, unknown>>
  signal: AbortSignal
}
/** The body beside its requests, and how many these are. Throws GatewayError for the first problem; nothing is stored then. */
export async function receiveRequests(
  { fileStore, catalogue }: { fileStore: Pick<FileStore, 'write'> } & Pick<CheckParts, 'catalogue'>,
  { key, caller, requests, signal }: Receiving,
): Promise<{ rest: Record<string, unknown>; total: number }> {
  const lines = createLineCheck({ api: 'anthropic', endpoint: MESSAGES_ENDPOINT, caller, catalogue })
  let total = 0
  let rest: Record<string, unknown> = {}
  let fault: unknown

  async function* jsonl(): AsyncGenerator<Uint8Array> {
    let read = await requests.next()
    for (; !read.done; read = await requests.next()) {
      for (const bytes of read.value) {
        const custom_id = lines.check({ line: ++total, offset: 0, length: bytes.length, bytes })
        const [problem] = custom_id === undefined ? lines.found().problems : []
        if (problem) throw requestProblem(problem)
      }
      yield Buffer.concat(read.value.flatMap((bytes) => [bytes, NEWLINE]))
    }
    rest = read.value
    if (total > 0) return
    const code = 'requests' in rest ? 'invalid_value' : 'missing_required_parameter'
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
    const body = streamOf(watched())
    await fileStore.write(key, { content_type: 'application/jsonl', body }, signal)
  } catch (thrown) {
    throw fault ?? thrown
  }
  return { rest, total }
}

const NEWLINE = new Uint8Array([0x0a])

function requestProblem({ line, code, message, param }: BatchProblem): GatewayError {
  if (line === null) return new GatewayError('request_too_large', message)
  const place = param === null ? `requests[${line - 1}]` : `requests[${line - 1}].${param}`
  const known = ['missing_required_parameter', 'invalid_type', 'model_not_found', 'model_not_allowed'] as const
  const text = param === null ? message : message.replace(`"${param}"`, `"${place}"`)
  const named = text === message ? `"${place}": ${message}` : text
  return new GatewayError(known.find((one) => one === code) ?? 'invalid_value', named, { param: place })
}
