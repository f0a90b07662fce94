/** Reads requests before a batch is created: receives those of a message batch, none kept in memory, and estimates those of a file. */
import type { Clock } from '../../kit/clock.ts'
import { streamOf } from '../../kit/stream-of.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { FileStore } from '../../outputs/outputs.ts'
import type { BatchEstimate } from '../../spec/batch.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { Batch } from '../../store/batches/batch-store.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { estimateLine } from './call-line.ts'
import { type BatchParts, inputKeyOf } from './parts.ts'
import { linesOf } from './run-lines.ts'
import { createLineCheck, MESSAGES_ENDPOINT, MOST, MOST_LINE_BYTES, MOST_PROBLEMS, tooMany } from './validate.ts'

/** `rest` is the body with a 0 in place of each request. */
type Splitter = {
  /** The requests that end in this piece. Throws GatewayError. */
  push(piece: Uint8Array): Uint8Array[]
  /** Throws GatewayError for a body that is not JSON as a whole. */
  end(): { rest: Record<string, unknown>; requests: number }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const ZERO = 0x30
const SPACE = 0x20
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d
/** The member whose elements are split, right before its value. */
const REQUESTS = /(?:^\s*\{|,)\s*"requests"\s*:\s*$/
/** Of everything but the requests themselves: a character and a comma for each, and other members. */
const MAX_REST = 1024 * 1024

function createSplitter({ max_request_bytes }: { max_request_bytes: number }): Splitter {
  let rest: number[] = []
  let depth = 0
  let isString = false
  let isEscaped = false
  let isRequests = false
  let requests = 0
  let element: Uint8Array[] = []
  let element_bytes = 0
  let isElement = false

  const elementDone = (): Uint8Array => {
    const whole = Buffer.concat(element)
    // Between its values only: a string of JSON has no line break.
    for (let at = 0; at < whole.length; at++) if (whole[at] === 0x0a || whole[at] === 0x0d) whole[at] = SPACE
    element = []
    element_bytes = 0
    isElement = false
    requests++
    return whole
  }

  function hold(bytes: Uint8Array): void {
    element_bytes += bytes.length
    if (element_bytes > max_request_bytes)
      throw new GatewayError('request_too_large', `"requests[${requests}]" has more than ${max_request_bytes} bytes.`, {
        param: `requests[${requests}]`,
      })
    element.push(bytes.slice())
  }

  function keep(byte: number): void {
    rest.push(byte)
    if (rest.length > MAX_REST)
      throw new GatewayError('request_too_large', `The body may have at most ${MAX_REST} bytes beside its requests.`)
  }

  function push(piece: Uint8Array): Uint8Array[] {
    const found: Uint8Array[] = []
    let start = 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      if (isString) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isString = false
        if (!isElement) keep(byte)
        continue
      }
      const isAtElements = isRequests && depth === 2
      if (isAtElements && !isElement && !isSpace(byte) && byte !== COMMA && byte !== CLOSE_ARRAY) {
        isElement = true
        start = at
        keep(ZERO)
      }
      // A number or a word as element ends here; it is refused later, with its number.
      if (isAtElements && isElement && (byte === COMMA || byte === CLOSE_ARRAY)) {
        hold(piece.subarray(start, at))
        found.push(elementDone())
      }
      if (byte === QUOTE) isString = true
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (byte === OPEN_ARRAY && depth === 1 && REQUESTS.test(textOf(rest.slice(-64)))) {
          if (isRequests || requests > 0) throw twice()
          isRequests = true
        }
        depth++
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        depth--
        if (isRequests && depth === 1) isRequests = false
      }
      if (!isElement) keep(byte)
    }
    if (isElement) hold(piece.subarray(start))
    return found
  }

  return {
    push,
    end() {
      const text = textOf(rest)
      rest = []
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch {
        throw new GatewayError('invalid_json', 'The body is not valid JSON.')
      }
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw new GatewayError('invalid_type', 'The body must be a JSON object.')
      return { rest: value as Record<string, unknown>, requests }
    },
  }
}

const textOf = (bytes: number[]): string => Buffer.from(bytes).toString('utf8')

const twice = () => new GatewayError('invalid_value', '"requests" stands twice in the body.', { param: 'requests' })

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

/** The first lines are priced each as a call; the others by their length. */
const PRICED_LINES = 1_000
const NANO = 1e9

type Estimating = { batch: Batch; file: FileRow; caller: Caller; currency: string; signal: AbortSignal }

export async function estimateBatch(
  { files, catalogue, call }: Pick<BatchParts, 'files' | 'catalogue' | 'call'>,
  { batch, file, caller, currency, signal }: Estimating,
): Promise<BatchEstimate> {
  const { api, endpoint } = batch
  const check = createLineCheck({ api, endpoint, caller, catalogue })
  const problems: NonNullable<BatchEstimate['errors']>['data'] = []
  const sums = { input_tokens: 0, output_tokens: 0, lowest: 0, highest: 0 }
  let [total, invalid, valid_bytes, priced, priced_bytes] = [0, 0, 0, 0, 0]
  let isKnown = true
  for await (const piece of linesOf(await files.read(file), { max_line_bytes: MOST_LINE_BYTES }))
    for (const raw of piece) {
      signal.throwIfAborted()
      if (++total > MOST[api].lines) continue
      const checked = check.check(raw)
      if (typeof checked !== 'string') {
        invalid++
        if (problems.length < MOST_PROBLEMS) problems.push({ ...checked, line: raw.line })
        continue
      }
      valid_bytes += raw.length
      if (priced === PRICED_LINES) continue
      const line = {
        line: raw.line,
        offset: 0,
        bytes: raw.length,
        custom_id: checked,
        attempts: 0,
        called_again: false,
      }
      const text = new TextDecoder().decode(raw.bytes)
      const found = await estimateLine(call, { batch, line, text, caller, signal })
      priced++
      priced_bytes += raw.length
      // What its route refuses costs nothing.
      if (!found) continue
      sums.input_tokens += found.input_tokens
      sums.output_tokens += found.output_tokens
      if (found.lowest === null || found.highest === null) isKnown = false
      sums.lowest += found.lowest ?? 0
      sums.highest += found.highest ?? 0
    }
  if (total > MOST[api].lines) problems.unshift(tooMany(api))
  const scale = priced_bytes === 0 ? 0 : valid_bytes / priced_bytes
  const amount = (nano: number) => (isKnown ? Math.round(nano * scale) / NANO : null)
  return {
    object: 'batch.estimate',
    endpoint,
    request_counts: { total, invalid },
    errors: problems.length > 0 ? { object: 'list', data: problems } : null,
    usage: {
      input_tokens: Math.round(sums.input_tokens * scale),
      most_output_tokens: Math.round(sums.output_tokens * scale),
    },
    cost: { lowest: amount(sums.lowest), highest: amount(sums.highest), currency },
  }
}
