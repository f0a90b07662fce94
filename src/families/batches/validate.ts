/** Checks the lines of a batch, while their file is uploaded and before any is called: which endpoints there are, and what is wrong with each. */
import { isRecord } from '../../kit/json.ts'
import { createTextSet } from '../../kit/text-set.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchApi, BatchProblem, NewLine } from '../../store/batches/batch-store.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { type ClaimedBatch, fail, inputStream, secondsOf } from './parts.ts'
import { createLineSplitter, linesOf, type RawLine, withoutLongStrings } from './run-lines.ts'

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

/** As the vendors document them. */
export const MOST: Record<BatchApi, { lines: number; bytes: number; custom_id: RegExp; rule: string }> = {
  openai: {
    lines: 50_000,
    bytes: 200 * 1024 * 1024,
    custom_id: /^[^\p{Cc}]{1,128}$/u,
    rule: 'a string of 1 to 128 characters',
  },
  anthropic: {
    lines: 100_000,
    bytes: 256 * 1024 * 1024,
    custom_id: /^[a-zA-Z0-9_-]{1,64}$/,
    rule: '1 to 64 letters, digits, "_" and "-"',
  },
}
/** The largest body of one call: that of its route is checked when it is called. */
export const MOST_LINE_BYTES = 32 * 1024 * 1024

type Problem = Omit<BatchProblem, 'line'>
type CheckParts = {
  api: BatchApi
  /** Absent: that of the first line that names one. */
  endpoint?: string
  caller: Caller
  catalogue: Pick<Catalogue, 'require'>
  /** False: models were checked before. Default true. */
  checks_models?: boolean
}

type LineCheck = {
  /** The custom_id of the line, or what is wrong with it. */
  check(line: RawLine): string | Problem
  /** Whether a batch of its vendor executes lines of one of the models. */
  hasNative(): boolean
  /** The model of the lines, where all have the same. */
  model(): string | undefined
  endpoint(): string | undefined
  /** The first models that were refused; null: none was named. */
  refused(): (string | null)[]
}

export function createLineCheck({
  api,
  endpoint: given,
  caller,
  catalogue,
  checks_models = true,
}: CheckParts): LineCheck {
  const seen = createTextSet()
  const refused = new Set<string | null>()
  let endpoint = given
  let hasNative = false
  /** What is wrong with each model that was named; undefined: nothing. */
  const models = new Map<string | undefined, Problem | undefined>()
  const body_name = api === 'openai' ? 'body' : 'params'

  function modelProblem(model: string | undefined): Problem | undefined {
    try {
      const chosen = catalogue.require(model, familyOf(endpoint ?? ''), caller)
      if (chosen.model.has_native_batches) hasNative = true
      return undefined
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      if (!checks_models) return undefined
      if (refused.size < MOST_PROBLEMS) refused.add(model?.slice(0, MOST_NAME_CHARACTERS) ?? null)
      return { code: thrown.code, message: thrown.message, param: `${body_name}.model` }
    }
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

  return {
    check({ bytes, length }) {
      if (length > MOST_LINE_BYTES)
        return { code: 'request_too_large', message: `A line may have at most ${MOST_LINE_BYTES} bytes.`, param: null }
      const value = parse(bytes)
      if (!isRecord(value))
        return { code: 'invalid_json_line', message: 'This line is not a JSON object.', param: null }
      const body = value[body_name]
      const problem =
        idProblem(value.custom_id) ??
        (api === 'openai' ? targetProblem(value) : undefined) ??
        (body === undefined ? missing(body_name) : undefined) ??
        (isRecord(body) ? bodyProblem(body) : invalid(`"${body_name}" must be an object.`, body_name))
      return problem ?? String(value.custom_id)
    },
    hasNative: () => hasNative,
    model() {
      const [first] = models.keys()
      return models.size === 1 ? first : undefined
    },
    endpoint: () => endpoint,
    refused: () => [...refused],
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
export const MOST_PROBLEMS = 100
const LINES_PER_WRITE = 1_000

export const tooMany = (api: BatchApi): BatchProblem => ({
  code: 'too_many_tasks',
  message: `A batch may have at most ${MOST[api].lines} lines.`,
  param: null,
  line: null,
})
const NO_LINES: BatchProblem = {
  code: 'empty_file',
  message: 'The input has no lines.',
  param: null,
  line: null,
}

type Read = { total: number; problems: BatchProblem[]; model: string | undefined; hasNative?: boolean }

/** `lost`: the claim is. */
export async function validate(claimed: ClaimedBatch): Promise<'ready' | 'failed' | 'lost'> {
  const { batch, store, clock, crashHook } = claimed
  const read = await readLines(claimed)
  if (!read) return 'lost'
  const now = secondsOf(clock.now())
  if (read.problems.length > 0) return (await fail(claimed, batch, read)) ? 'failed' : 'lost'
  const { model, hasNative } = read
  const found = { ...(model !== undefined && { model }), ...(!hasNative && { is_ordered: true as const }) }
  const progress = { ...batch.progress, in_progress_at: now, ...found }
  const change = { progress, total: read.total }
  // It was cancelled meanwhile where this is refused.
  const isSaved = await store.save(batch, { status: 'in_progress', ...change })
  if (!isSaved && !(await store.save(batch, change))) return 'lost'
  batch.progress = progress
  batch.status = isSaved ? 'in_progress' : 'cancelling'
  crashHook('batch: validated')
  return 'ready'
}

/** Undefined: the claim is lost. */
async function readLines(claimed: ClaimedBatch): Promise<Read | undefined> {
  const { batch, store, signal, crashHook } = claimed
  const { api, endpoint } = batch
  const failed = (code: string, message: string, param: string | null = null): Read => ({
    total: 0,
    problems: [{ code, message, param, line: null }],
    model: undefined,
  })
  const caller = await claimed.callerOf(batch.token_id)
  if (!caller) return failed('invalid_api_key', 'The token of this batch was revoked, or its project disabled.')
  const input = await inputStream(claimed).catch((thrown) => {
    if (thrown instanceof GatewayError && thrown.code === 'file_not_found') return thrown
    throw thrown
  })
  if (input instanceof GatewayError) return failed(input.code, input.message, 'input_file_id')
  // Requests of the Messages API were checked when they arrived: a model that is gone since is the error of its line.
  const { catalogue } = claimed
  const lines = createLineCheck({ api, endpoint, caller, catalogue, checks_models: api === 'openai' })
  const problems: BatchProblem[] = []
  const found: NewLine[] = []
  let total = 0
  for await (const piece of linesOf(input, { max_line_bytes: MOST_LINE_BYTES })) {
    signal.throwIfAborted()
    for (const raw of piece) {
      if (++total > MOST[api].lines) return { total: 0, problems: [tooMany(api)], model: undefined }
      const checked = lines.check(raw)
      if (typeof checked !== 'string') {
        if (problems.length < MOST_PROBLEMS) problems.push({ ...checked, line: raw.line })
      } else if (problems.length === 0) {
        found.push({ line: raw.line, offset: raw.offset, bytes: raw.length, custom_id: checked })
      }
    }
    while (found.length >= LINES_PER_WRITE) {
      if (!(await store.addLines(batch, found.splice(0, LINES_PER_WRITE)))) return undefined
      crashHook('batch: lines added')
    }
  }
  if (total === 0) return { total, problems: [NO_LINES], model: undefined }
  if (problems.length === 0 && found.length > 0) {
    if (!(await store.addLines(batch, found))) return undefined
    crashHook('batch: lines added')
  }
  return { total, problems, model: lines.model(), hasNative: lines.hasNative() }
}

type UploadCheck = {
  push(piece: Uint8Array): void
  /** What is stored of the problems; null: there are none. */
  end(): string | null
}

/** As stored with the file. They are those of a batch with this endpoint, or with any, while all these models are refused. */
type Found = { total: number; problems: BatchProblem[]; endpoint?: string | undefined; refused: (string | null)[] }

const MOST_MESSAGE_CHARACTERS = 500
type UploadParts = Pick<CheckParts, 'caller' | 'catalogue'>

export function createUploadCheck({ caller, catalogue }: UploadParts): UploadCheck {
  const splitter = createLineSplitter({ max_line_bytes: MOST_LINE_BYTES })
  const lines = createLineCheck({ api: 'openai', caller, catalogue })
  const problems: BatchProblem[] = []
  let total = 0

  function check(raw: RawLine): void {
    if (++total > MOST.openai.lines) return
    const checked = lines.check(raw)
    if (typeof checked === 'string' || problems.length === MOST_PROBLEMS) return
    problems.push({ ...checked, message: checked.message.slice(0, MOST_MESSAGE_CHARACTERS), line: raw.line })
  }

  return {
    push: (piece) => splitter.push(piece).forEach(check),
    end() {
      splitter.end().forEach(check)
      const whole = total === 0 ? NO_LINES : total > MOST.openai.lines ? tooMany('openai') : undefined
      const found: Found = whole
        ? { total: 0, problems: [whole], refused: [] }
        : { total, problems, endpoint: lines.endpoint(), refused: lines.refused() }
      return found.problems.length > 0 ? JSON.stringify(found) : null
    },
  }
}

/** What is known to be wrong with a batch of this file; undefined: nothing, so that it is read. */
export function knownProblems(
  { problems }: Pick<FileRow, 'problems'>,
  { endpoint, caller, catalogue }: UploadParts & { endpoint: string },
): Pick<Found, 'total' | 'problems'> | undefined {
  if (problems === null) return undefined
  const found: Found = JSON.parse(problems)
  if (found.endpoint !== undefined && found.endpoint !== endpoint) return undefined
  const isServed = (model: string | null) => {
    try {
      return Boolean(catalogue.require(model ?? undefined, familyOf(endpoint), caller))
    } catch {
      return false
    }
  }
  return found.refused.some(isServed) ? undefined : found
}
