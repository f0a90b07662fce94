/** Whole responses that pass: the body for the client is the one that parsing, copying and printing gives, for random bodies. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  completionText,
  contentsText,
  messageText,
  randomBodies,
  responseText,
} from '../../../../test/kit/random-answers.ts'
import { isRecord, type JsonRecord, parseJsonKeeping } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import { chatcompatPassthrough } from '../../chatcompat/client/passthrough.ts'
import { encodeWhole } from '../../chatcompat/client/response.ts'
import { annotationsOf, contentOf } from '../../chatcompat/upstream/answer.ts'
import { contentgenPassthrough } from '../../contentgen/client/passthrough.ts'
import { usageOf as contentgenUsageOf } from '../../contentgen/client/response.ts'
import { messagesPassthrough } from '../../messages/client/passthrough.ts'
import { usageOf as messagesUsageOf } from '../../messages/client/response.ts'
import { answerOf as messageAnswerOf, messageIn } from '../../messages/upstream/answer.ts'
import { usageOf as responsesUsageOf } from '../../responses/client/answer.ts'
import { responsesPassthrough } from '../../responses/client/passthrough.ts'
import {
  createResponseRewriter,
  emptyPassthroughState,
  type PassthroughExchange,
} from '../../responses/client/passthrough-items.ts'
import { answerOf as responseAnswerOf, responseIn } from '../../responses/upstream/answer.ts'
import type { ChatCompletion } from '../canonical.ts'
import type { ProtocolPassthrough, ResponseEncoder } from '../protocol.ts'
import { argumentsText, type Faults, finishReasonOf, holdsError, namedText, usageOf } from '../upstream.ts'

/** Of this file: 20,000 bodies take a second or two, and far longer on a machine that is busy with other work. */
setDefaultTimeout(120_000)

const head = { id: 'ours-1', created: 1_800_000_000, model: 'house/model' }
const faults: Faults = {
  inAnswer: (payload) => new GatewayError('server_is_overloaded', JSON.stringify(payload)),
  notUnderstood: (what) => new GatewayError('bad_upstream_response', what),
  cut: () => new GatewayError('upstream_cut', 'It broke off.'),
}
const counted = usageFrom({ input: 9, output: 3 })

/** What comes of a body: usage and choices for the meter, and the body for the client; or the error. */
type Read = { usage?: unknown; choices: unknown; body: unknown }
type Result = Read | { code: string; message: string }

function resultOf(work: () => Read): Result {
  try {
    const { usage, choices, body } = work()
    return copied({ usage: usage ?? null, choices, body })
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    return { code: thrown.code, message: thrown.message }
  }
}

const copied = <T>(value: T): T => JSON.parse(JSON.stringify(value))

/** Ids that the gateway makes for calls without one differ. */
const comparable = (result: Result): string => JSON.stringify(result).replaceAll(/call_[A-Za-z0-9]{24}/g, 'call_')

const writer = (delta_mirror: boolean): ResponseEncoder =>
  ({
    whole: (answer: ChatCompletion, usage: Usage) => encodeWhole(answer, head, { usage, delta_mirror }),
  }) as unknown as ResponseEncoder

function passed(passthrough: ProtocolPassthrough, text: string, delta_mirror = true): { result: Result; sent: string } {
  let sent = ''
  const result = resultOf(() => {
    const parts = { head, request: { model: head.model, messages: [] }, writer: writer(delta_mirror), faults }
    const whole = passthrough.whole(text, parts)
    const [usage, choices] = copied([whole.usage, whole.choices])
    const body = whole.encode(whole.usage ?? counted)
    sent = typeof body === 'string' ? body : JSON.stringify(body)
    return { usage, choices, body: JSON.parse(sent) }
  })
  return { result, sent }
}

/** Chat completions, each object of which is copied member by member. */
function copiedCompletion(text: string, delta_mirror: boolean): Result {
  return resultOf(() => {
    const payload = parseJsonKeeping(text, ['arguments'])
    if (!isRecord(payload) && !Array.isArray(payload)) {
      throw faults.notUnderstood('answered with something that is not JSON')
    }
    const body: unknown = Array.isArray(payload) ? payload[0] : payload
    if (!isRecord(body) || holdsError(body)) throw faults.inAnswer(body)
    const raw = Array.isArray(body.choices) ? body.choices.filter(isRecord) : []
    if (raw.length === 0) throw faults.notUnderstood('answered with JSON that is not a chat completion')
    const { usage: reported, ...rest } = body
    const usage = usageOf(reported)
    const {
      cost: _,
      cost_details: __,
      is_byok: ___,
      ...others
    } = isRecord(payload) && isRecord(reported) ? reported : {}
    const choices = raw.map(copiedChoice)
    const shown = choices.map((choice) => ({
      ...choice,
      message: { refusal: null, ...choice.message },
      logprobs: choice.logprobs ?? null,
      ...(delta_mirror ? { delta: mirrorOf(choice.message) } : {}),
    }))
    const fingerprint = rest.system_fingerprint ?? null
    const own = { ...head, object: 'chat.completion', choices: shown, system_fingerprint: fingerprint }
    return { usage, choices, body: { ...rest, ...own, usage: { ...others, ...(usage ?? counted) } } }
  })
}

type CopiedMessage = JsonRecord & { tool_calls?: object[] }

function copiedChoice(raw: JsonRecord, position: number) {
  const { delta, ...rest } = raw
  const message = copiedMessage(isRecord(raw.message) ? raw.message : isRecord(delta) ? delta : { content: raw.text })
  const hasCalls = message.tool_calls !== undefined
  return {
    ...rest,
    logprobs: raw.logprobs,
    index: Number.isInteger(raw.index) ? raw.index : position,
    message,
    finish_reason: finishReasonOf(raw.finish_reason, hasCalls) ?? (hasCalls ? 'tool_calls' : 'stop'),
  }
}

const OTHERWISE = ['role', 'content', 'reasoning', 'reasoning_content', 'function_call', 'tool_calls', '__proto__']

function copiedMessage(raw: JsonRecord): CopiedMessage {
  const { content, reasoning } = contentOf(raw.content)
  const kept = Object.entries(raw).filter(([name, value]) => value !== null && !OTHERWISE.includes(name))
  const thought = [raw.reasoning_content, raw.reasoning, reasoning].find(
    (text) => typeof text === 'string' && text !== '',
  )
  const { annotations, ...others } = Object.fromEntries(kept)
  const calls = Array.isArray(raw.tool_calls)
    ? raw.tool_calls
    : isRecord(raw.function_call)
      ? [{ function: raw.function_call }]
      : []
  const tool_calls = calls.flatMap(copiedCall)
  return {
    role: 'assistant',
    content,
    ...others,
    ...(raw.refusal === null ? { refusal: null } : {}),
    ...(Array.isArray(annotations) ? { annotations: annotationsOf([...annotations]) } : {}),
    ...(thought === undefined ? {} : { reasoning_content: thought }),
    ...(tool_calls.length > 0 ? { tool_calls } : {}),
  }
}

function copiedCall(raw: unknown): object[] {
  if (!isRecord(raw)) return []
  const { index: _, custom, ...extras } = raw
  const called = isRecord(raw.function) ? raw.function : isRecord(custom) ? custom : {}
  const name = namedText(called.name)
  if (name === undefined) return []
  const given =
    typeof called.input === 'string' ? JSON.stringify({ input: called.input }) : argumentsText(called.arguments)
  const id = namedText(raw.id) ?? 'call_'
  return [{ ...extras, id, type: 'function', function: { name, arguments: given || '{}' } }]
}

function mirrorOf({ content, tool_calls, ...rest }: CopiedMessage): JsonRecord {
  return {
    ...rest,
    ...(content === null ? {} : { content }),
    ...(tool_calls ? { tool_calls: tool_calls.map((call, index) => ({ index, ...call })) } : {}),
  }
}

/** Members in one order: an answer that is changed in place keeps the order of its provider. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return entries.map(([name, member]) => [name, sorted(member)])
}

/** The numbers of a text that JavaScript would write in another way. */
const longNumbers = (text: string): string[] => text.match(/\d{17,}/g) ?? []

const compared = (result: Result): string => comparable(sorted(result) as Result)

function expectSame(text: string, result: Result, other: Result): void {
  const [left, right] = [compared(result), compared(other)]
  if (left !== right) expect({ text, result: left }).toEqual({ text, result: right })
}

/** How many of the bodies are responses; the others are errors. */
const responsesIn = (results: Result[]): number => results.filter((result) => !('code' in result)).length

describe('a whole response that passes', () => {
  test.each([true, false])(
    'is a chat completion as if each object were copied, with the mirror: %p',
    (delta_mirror) => {
      const results = randomBodies(20_000, completionText).map((text) => {
        const { result } = passed(chatcompatPassthrough, text, delta_mirror)
        expectSame(text, result, copiedCompletion(text, delta_mirror))
        return result
      })
      expect(responsesIn(results)).toBeGreaterThan(8_000)
    },
  )

  test('is a message as if all of it were decoded, and keeps its digits', () => {
    const results = randomBodies(20_000, messageText).map((text) => {
      const { result, sent } = passed(messagesPassthrough, text)
      const decoded = resultOf(() => {
        const payload = messageIn(text, faults)
        const { usage, choices } = messageAnswerOf(payload, head)
        const stop = namedText(payload.stop_reason)
        const stop_reason = stop ?? (choices[0]?.finish_reason === 'tool_calls' ? 'tool_use' : 'end_turn')
        if (isRecord(payload.usage) && stop !== undefined) {
          if (typeof payload.model === 'string') expect(longNumbers(sent)).toEqual(longNumbers(text))
          return { usage, choices, body: { ...payload, model: head.model } }
        }
        const missing = messagesUsageOf(usage ?? counted)
        return { usage, choices, body: { ...payload, stop_reason, model: head.model, usage: payload.usage ?? missing } }
      })
      expectSame(text, result, decoded)
      return result
    })
    expect(responsesIn(results)).toBeGreaterThan(8_000)
  })

  test('is a contentgen response as if all of it were decoded', () => {
    const passthrough = contentgenPassthrough({ hasStarted: false })
    const results = randomBodies(20_000, contentsText).map((text) => {
      const { result, sent } = passed(passthrough, text)
      // A list is always decoded.
      const { result: decoded } = passed(passthrough, `[${text}]`)
      if (text.startsWith('[')) return result
      if ('code' in result) expectSame(text, result, decoded)
      else {
        const payload = JSON.parse(text) as JsonRecord
        const hasUsage = isRecord(payload.usageMetadata)
        if (hasUsage && typeof payload.modelVersion === 'string') expect(longNumbers(sent)).toEqual(longNumbers(text))
        const usageMetadata = contentgenUsageOf((result.usage as Usage) ?? counted)
        const body = hasUsage
          ? withModel(payload, 'modelVersion')
          : { ...payload, usageMetadata, modelVersion: head.model }
        expectSame(text, result, { ...decoded, body })
      }
      return result
    })
    expect(responsesIn(results)).toBeGreaterThan(8_000)
  })

  test('is a response as if all of it were decoded', () => {
    const exchange: PassthroughExchange = {
      body: {},
      before: { items: [] } as unknown as PassthroughExchange['before'],
      input: [],
      isStored: false,
      includes_encrypted: false,
      state: emptyPassthroughState(),
    }
    const passthrough = responsesPassthrough(exchange)
    const rewriter = createResponseRewriter(exchange, head)
    const results = randomBodies(20_000, responseText).map((text) => {
      const { result } = passed(passthrough, text)
      const decoded = resultOf(() => {
        const payload = responseIn(text, faults)
        const { usage, choices } = responseAnswerOf(payload, head) ?? { choices: [] }
        const changed = rewriter.response(payload)
        if (changed === payload && isRecord(payload.usage)) {
          return { usage, choices, body: withModel(payload, 'model') }
        }
        const own = isRecord(payload.usage) ? {} : { usage: responsesUsageOf(usage ?? counted) }
        return { usage, choices, body: { ...changed, ...own, model: head.model } }
      })
      expectSame(text, result, decoded)
      return result
    })
    expect(responsesIn(results)).toBeGreaterThan(5_000)
  })
})

const withModel = (payload: JsonRecord, name: string): JsonRecord =>
  Object.hasOwn(payload, name) ? { ...payload, [name]: head.model } : payload
