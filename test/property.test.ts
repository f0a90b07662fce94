/** More than ten thousand generated bodies at the chat endpoint: every response follows the rules. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc, { type Arbitrary } from 'fast-check'
import { Compile } from 'typebox/compile'
import { systemClock } from '../src/kit/clock.ts'
import type { ChatChunk, ChatCompletion } from '../src/protocols/shared/canonical.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'
import { ChatChunk as ChunkSchema, ChatCompletion as CompletionSchema } from '../src/spec/chat-completion.ts'
import { ERRORS, ErrorBody } from '../src/spec/error.ts'
import {
  anyValue,
  type Body,
  brokenText,
  directiveRequest,
  type Fault,
  goodRequest,
  nearRequest,
  textOf,
} from './kit/bodies.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

/** Fixed, so that a failure can be reproduced. fast-check prints it with the path to the smallest failing body. */
const SEED = 20_261_121
const AT_LEAST = 10_000
/** No body takes more than some milliseconds. A request that takes this long hangs. */
const HANGS_AFTER_MILLISECONDS = 15_000

/** One line, also for clients that end lines at more than CR and LF. */
const EVENT = /^data: (\{[^\r\n\u0085\u2028\u2029]*\}|\[DONE\])$/

const isCompletion = Compile(CompletionSchema)
const isChunk = Compile(ChunkSchema)
const isError = Compile(ErrorBody)

let gateway: TestGateway
let sent = 0
/** The members of every object, before anything tried to add to them. */
const prototype = Object.getOwnPropertyNames(Object.prototype)
beforeAll(async () => {
  gateway = await startGateway({ server: { max_body_bytes: 200_000 } }, { clock: systemClock, manual: loadManual })
})
afterAll(() => gateway[Symbol.asyncDispose]())

async function inTime<T>(work: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${what} hangs`)), HANGS_AFTER_MILLISECONDS)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** The status that the manual documents for a simulated status: a separate table, written by hand. */
function statusFor(requested: number): number {
  if (requested === 400 || requested === 422) return 400
  if (requested === 413 || requested === 429) return requested
  if (requested === 408 || requested === 504 || requested === 524) return 504
  if (requested === 402 || requested === 498 || requested === 503 || requested === 529) return 503
  return 502
}

/** The statuses above 499 that a body may return. */
function mayFailWith({ status, cut_after, error_after }: Fault): number[] {
  if (status !== undefined) return [statusFor(status)]
  return cut_after === undefined && error_after === undefined ? [] : [502]
}

/** Sends a body, checks everything that holds for every response, and returns its status. */
async function send({ text, fault = {} }: Body): Promise<number> {
  sent++
  const response = await inTime(gateway.chat(text), 'the answer')
  const summary = await inTime(response.text(), 'the end of the response')
  expect(response.headers.get('x-request-id')).toMatch(/^req_\w{24}$/)
  expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'))
  if (response.status !== 200) checkRefusal(response.status, summary, fault)
  else if (response.headers.get('content-type')?.startsWith('text/event-stream')) checkStream(summary, fault)
  else checkWhole(summary)
  return response.status
}

function checkError(body: unknown): { status: number } {
  if (!isError.Check(body)) throw new Error(`not an error: ${JSON.stringify(body)}`)
  const { code, type, message, param } = body.error
  const row = ERRORS[code as keyof typeof ERRORS]
  if (row === undefined) throw new Error(`not an error code of the table: ${code}`)
  expect(type).toBe(row.type)
  expect(message).not.toBe('')
  // Hostile names are returned only truncated.
  expect(message.length).toBeLessThan(3_000)
  expect((param ?? '').length).toBeLessThan(3_000)
  return row
}

function checkRefusal(status: number, summary: string, fault: Fault): void {
  expect(checkError(JSON.parse(summary)).status).toBe(status)
  if (status >= 500) expect(mayFailWith(fault)).toContain(status)
  else expect(status).toBeGreaterThanOrEqual(400)
}

function checkWhole(summary: string): void {
  const body = JSON.parse(summary)
  if (!isCompletion.Check(body)) throw new Error(`not a completion: ${summary.slice(0, 2_000)}`)
  const { choices, usage } = body as ChatCompletion // no request has custom tools
  expect(choices.map(({ index }) => index)).toEqual(choices.map((_, at) => at))
  for (const { finish_reason, message, delta } of choices) {
    expect(finish_reason).not.toBeNull()
    expect(delta?.content ?? null).toEqual(message.content)
    checkCalls(message.tool_calls, finish_reason)
  }
  expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
}

/** A call that was not cut has a name, and JSON for arguments. */
function checkCalls(calls: ChatCompletion['choices'][number]['message']['tool_calls'], finish: string | null): void {
  if (finish === 'tool_calls') expect(calls?.length).toBeGreaterThan(0)
  if (finish === 'stop') expect(calls ?? []).toEqual([])
  for (const { id, function: called } of calls ?? []) {
    expect([id, called.name].every(Boolean)).toBe(true)
    if (finish === 'tool_calls') expect(JSON.parse(called.arguments)).toBeObject()
  }
}

function checkStream(summary: string, fault: Fault): void {
  expect(summary).toEndWith('\n\n')
  const blocks = summary.slice(0, -2).split('\n\n')
  const events = blocks.filter((block) => block !== ': keep-alive')
  for (const event of events) if (!EVENT.test(event)) throw new Error(`not an event: ${event}`)
  const last = events.pop()
  if (last !== 'data: [DONE]') {
    const { status } = checkError(JSON.parse(last?.slice(6) ?? ''))
    expect(mayFailWith(fault)).toContain(status)
  }
  const chunks = events.map((event): ChatChunk => {
    const chunk: unknown = JSON.parse(event.slice(6))
    if (!isChunk.Check(chunk)) throw new Error(`not a chunk: ${event}`)
    return chunk as ChatChunk // likewise
  })
  checkChunks(chunks, last === 'data: [DONE]')
}

/** The state of one choice while its chunks arrive. */
type Seen = { finish: string | null; calls: { id: string; name: string; text: string }[] }

function checkChunks(chunks: ChatChunk[], isWhole: boolean): void {
  const seen = new Map<number, Seen>()
  const heads = new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`))
  expect(heads.size).toBeLessThanOrEqual(1)
  for (const [at, { choices, usage }] of chunks.entries()) {
    if (choices.length === 0) {
      expect([at, usage === null || usage === undefined]).toEqual([chunks.length - 1, false])
      continue
    }
    expect(usage ?? null).toBeNull()
    for (const { index, delta, finish_reason } of choices) {
      const known = seen.get(index)
      if (!known) {
        expect(delta).toEqual({ role: 'assistant', content: '' })
        seen.set(index, { finish: null, calls: [] })
        continue
      }
      expect([delta.role, known.finish]).toEqual([undefined, null])
      known.finish = finish_reason ?? null
      for (const call of delta.tool_calls ?? []) {
        const place = call.index ?? -1
        const before = known.calls[place]
        if (before) {
          expect([call.id, call.type, call.function.name]).toEqual([undefined, undefined, undefined])
          before.text += call.function.arguments
        } else {
          expect([place, call.type]).toEqual([known.calls.length, 'function'])
          known.calls.push({ id: call.id ?? '', name: call.function.name ?? '', text: call.function.arguments })
        }
      }
    }
  }
  if (!isWhole) return
  expect(seen.size).toBeGreaterThan(0)
  for (const { finish, calls } of seen.values()) {
    expect(finish).not.toBeNull()
    checkCalls(
      calls.map(({ id, name, text }) => ({ id, function: { name, arguments: text } })),
      finish,
    )
  }
}

/** Sends this many bodies, and returns how often each status occurred. */
async function sendAll<T>(
  bodies: Arbitrary<T>,
  runs: number,
  bodyOf: (generated: T) => Body,
): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  const property = fc.asyncProperty(bodies, async (generated) => {
    const status = await send(bodyOf(generated))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  })
  await fc.assert(property, { seed: SEED, numRuns: runs, endOnFailure: false })
  return statuses
}
const share = (statuses: Map<number, number>, status: number) =>
  (statuses.get(status) ?? 0) / [...statuses.values()].reduce((sum, count) => sum + count, 0)

test('any JSON is refused as the caller’s mistake', async () => {
  const statuses = await sendAll(anyValue, 1_500, (value) => ({ text: textOf(value) }))
  expect([...statuses.keys()]).toEqual([400])
}, 120_000)

test('invalid text or JSON is refused in the documented format', async () => {
  const statuses = await sendAll(brokenText, 2_000, (body) => body)
  expect(share(statuses, 400)).toBeGreaterThan(0.5)
}, 120_000)

test('a request with one mistake is served or refused without a failure', async () => {
  const statuses = await sendAll(nearRequest, 4_000, (body) => body)
  // Otherwise the changes would be too small, or too large, to find anything.
  expect(share(statuses, 200)).toBeGreaterThan(0.1)
  expect(share(statuses, 400)).toBeGreaterThan(0.3)
}, 120_000)

test('a valid request is served, or refused for a feature that its model does not support', async () => {
  const statuses = await sendAll(goodRequest, 1_500, (request) => ({ text: textOf(request) }))
  expect(share(statuses, 200)).toBeGreaterThan(0.5)
}, 120_000)

test('a request with simulated faults causes exactly these faults', async () => {
  const statuses = await sendAll(directiveRequest, 2_000, (body) => body)
  expect(share(statuses, 200)).toBeGreaterThan(0.2)
  for (const status of [400, 502, 503, 504]) expect(statuses.get(status)).toBeGreaterThan(0)
}, 120_000)

test('a hanging stream ends when its reader disconnects, at any point', async () => {
  const property = fc.asyncProperty(fc.nat(20), fc.boolean(), async (after, isRead) => {
    sent++
    const content = `Hello\n@sandbox tokens=30 hang_after=${after + 1}`
    const body = { model: 'general', stream: true, messages: [{ role: 'user', content }] }
    const response = await inTime(gateway.chat(body), 'the answer')
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    if (isRead) await inTime(reader.read(), 'the first batch')
    await inTime(reader.cancel(), 'leaving')
  })
  await fc.assert(property, { seed: SEED, numRuns: 100 })
}, 120_000)

test(`${AT_LEAST} or more bodies were sent in all, none is open, and none failed inside the gateway`, async () => {
  expect(sent).toBeGreaterThanOrEqual(AT_LEAST)
  await inTime(gateway.instance.drain({ deadline_ms: 60_000 }), 'an open request')
  expect(gateway.logged()).not.toContain('internal error')
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototype)
})
