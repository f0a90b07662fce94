/** Checks the input of a batch before any line is called: which endpoints there are, where each line lies, and what is wrong with it. */
import { isRecord } from '../../kit/json.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchApi, BatchProblem, NewLine } from '../../store/batches/batch-store.ts'
import { type ClaimedBatch, endingOf, inputStream, secondsOf } from './parts.ts'

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

/** `line` counts from 1. `bytes` is empty where the line is longer than the limit; `length` is what it has. */
type RawLine = { line: number; offset: number; length: number; bytes: Uint8Array }

const NEWLINE = 0x0a
const RETURN = 0x0d

/** The lines of each piece of the body together; blank lines are left out. */
export async function* linesOf(
  body: ReadableStream<Uint8Array>,
  { max_line_bytes }: { max_line_bytes: number },
): AsyncGenerator<RawLine[]> {
  let held: Uint8Array[] = []
  let held_bytes = 0
  let line = 1
  let offset = 0

  function take(end: Uint8Array): RawLine | undefined {
    const length = held_bytes + end.length
    const isTooLong = length > max_line_bytes
    const whole = isTooLong ? NOTHING : held.length === 0 ? end : Buffer.concat([...held, end])
    const bytes = whole.at(-1) === RETURN ? whole.subarray(0, -1) : whole
    const found = { line, offset, length: isTooLong ? length : bytes.length, bytes }
    held = []
    held_bytes = 0
    line++
    offset += length + 1
    return isTooLong || !isBlank(bytes) ? found : undefined
  }

  for await (const piece of body) {
    const lines: RawLine[] = []
    let start = 0
    for (let at = piece.indexOf(NEWLINE); at !== -1; at = piece.indexOf(NEWLINE, start)) {
      const found = take(piece.subarray(start, at))
      if (found) lines.push(found)
      start = at + 1
    }
    const rest = piece.subarray(start)
    held_bytes += rest.length
    // The rest of a line that is too long is counted only.
    if (held_bytes > max_line_bytes) held = []
    else if (rest.length > 0) held.push(rest.slice())
    if (lines.length > 0) yield lines
  }
  if (held_bytes > 0) {
    const found = take(NOTHING)
    if (found) yield [found]
  }
}

const NOTHING = new Uint8Array(0)

const isBlank = (bytes: Uint8Array): boolean => {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== RETURN) return false
  return true
}

/** A text on one line: outside of its strings JSON may be broken over lines, and inside of them it cannot be. */
export const oneLine = (json: string): string => (/[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json)

type Problem = Omit<BatchProblem, 'line'>
type CheckParts = {
  api: BatchApi
  endpoint: string
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
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

export function createLineCheck({ api, endpoint, caller, catalogue, checks_models = true }: CheckParts): LineCheck {
  const seen = new Set<string>()
  let hasNative = false
  /** What is wrong with each model that was named; undefined: nothing. */
  const models = new Map<string | undefined, Problem | undefined>()
  const body_name = api === 'openai' ? 'body' : 'params'

  function modelProblem(model: string | undefined): Problem | undefined {
    try {
      const chosen = catalogue.require(model, familyOf(endpoint), caller)
      if (chosen.model.has_native_batches) hasNative = true
      return undefined
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      if (!checks_models) return undefined
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
    if (!seen.has(custom_id)) return undefined
    const message = `The custom_id "${custom_id}" stands in an earlier line too.`
    return { code: 'duplicate_custom_id', message, param: 'custom_id' }
  }

  function targetProblem({ method, url }: Record<string, unknown>): Problem | undefined {
    if (method === undefined) return missing('method')
    if (method !== 'POST') return invalid('"method" must be "POST".', 'method')
    if (url === undefined) return missing('url')
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
      if (typeof value.custom_id === 'string' && seen.size < MOST[api].lines) seen.add(value.custom_id)
      return problem ?? String(value.custom_id)
    },
    hasNative: () => hasNative,
    model() {
      const [first] = models.keys()
      return models.size === 1 ? first : undefined
    },
  }
}

const MOST_MODELS = 1_000

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
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
const LINES_PER_WRITE = 1_000

type Read = { total: number; problems: BatchProblem[]; model: string | undefined; hasNative?: boolean }

/** `lost`: the claim is. */
export async function validate(claimed: ClaimedBatch): Promise<'ready' | 'failed' | 'lost'> {
  const { batch, store, clock, log, crashHook } = claimed
  const read = await readLines(claimed)
  if (!read) return 'lost'
  const now = secondsOf(clock.now())
  if (read.problems.length > 0) {
    const progress = { ...batch.progress, problems: read.problems, ended_at: now }
    log.info('batch failed', { batch_id: batch.batch_id, token_id: batch.token_id, lines: read.total })
    const change = { status: 'failed', progress, total: read.total, due_ms: clock.now(), release: true } as const
    return (await store.save(batch, { ...change, ...endingOf(claimed) })) ? 'failed' : 'lost'
  }
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
  let found: NewLine[] = []
  let total = 0
  for await (const piece of linesOf(input, { max_line_bytes: MOST_LINE_BYTES })) {
    signal.throwIfAborted()
    for (const raw of piece) {
      if (++total > MOST[api].lines)
        return failed('too_many_tasks', `A batch may have at most ${MOST[api].lines} lines.`)
      const checked = lines.check(raw)
      if (typeof checked !== 'string') {
        if (problems.length < MOST_PROBLEMS) problems.push({ ...checked, line: raw.line })
      } else if (problems.length === 0) {
        found.push({ line: raw.line, offset: raw.offset, bytes: raw.length, custom_id: checked })
      }
    }
    if (found.length < LINES_PER_WRITE) continue
    if (!(await store.addLines(batch, found))) return undefined
    crashHook('batch: lines added')
    found = []
  }
  if (total === 0) return failed('empty_file', 'The input has no lines.')
  if (problems.length === 0 && found.length > 0) {
    if (!(await store.addLines(batch, found))) return undefined
    crashHook('batch: lines added')
  }
  return { total, problems, model: lines.model(), hasNative: lines.hasNative() }
}
