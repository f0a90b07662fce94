/**
 * Generated conversations and responses, translated through every dialect and back: a client's request goes through
 * one gateway, in the dialect of its provider's kind to a second gateway, and from there to a chat-completions
 * provider. The provider receives what the client sent, and the client receives what the provider sent.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import { openPort, type Port } from './kit/served.ts'
import { chunk, completion, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

const SEED = 20_261_121
const RUNS = 100

/** Each kind, and the path at which the second gateway offers its API. */
const KINDS: { kind: ProviderKind; base(url: string): string }[] = [
  { kind: 'chatcompat', base: (url) => url },
  { kind: 'messages-compat', base: (url) => url.replace(/\/v1$/, '') },
  { kind: 'responses-compat', base: (url) => url },
  { kind: 'contentgen-compat', base: (url) => url.replace(/\/v1$/, '/v1beta') },
]

let vendor: Vendor
let upstream: Port
let near: Port
beforeAll(async () => {
  vendor = startVendor()
  upstream = await openPort({ sandbox: false, providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
  const providers = KINDS.map(({ kind, base }) => [kind, { kind, base_url: base(upstream.url), key: upstream.token }])
  const models = KINDS.map(({ kind }) => [`${kind}/m`, { targets: [{ provider: kind, model: 'v/m' }] }])
  near = await openPort({
    sandbox: false,
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(models),
  })
})
afterAll(async () => {
  await near.close()
  await upstream.close()
  await vendor.stop()
})

type Call = { id: string; name: string; args: object }
type Turn =
  | { role: 'system' | 'user'; text: string; image?: string }
  | { role: 'assistant'; text: string; calls: Call[]; results: string[] }
type Conversation = {
  turns: Turn[]
  tools: string[]
  choice: string | undefined
  schema: boolean
  most: number | undefined
}

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const SIGNS = [...'abcdefg ABC \n\t 0123 .,:;!?"\'\\/{}[]<>&%$#@=+-_* éßñ漢字 🙂👩‍👩‍👧 \u2028 עברית ']
/** Texts that survive joining: each has a character other than white space. */
const text = fc.array(fc.constantFrom(...SIGNS), { minLength: 1, maxLength: 60 }).map((signs) => `x${signs.join('')}x`)
const name = fc.constantFrom('get_weather', 'search', 'run_command', 'a-b_c9')
const args = fc.dictionary(
  fc.constantFrom('city', 'n', 'deep', 'list', 'ok'),
  fc.oneof(text, fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }), fc.record({ inner: text })),
  { maxKeys: 4 },
)
const calls = fc
  .array(fc.record({ name, args }), { maxLength: 3 })
  .map((some): Call[] => some.map((call, index) => ({ ...call, id: `call_${index}_${call.name}` })))

const user = fc.record({
  role: fc.constant('user' as const),
  text,
  image: fc.option(fc.constant(PIXEL), { nil: undefined, freq: 4 }),
}) as fc.Arbitrary<Turn>
const assistant = fc
  .record({ text: fc.oneof(text, fc.constant('')), calls, results: fc.array(text, { minLength: 3, maxLength: 3 }) })
  .filter(({ text: summary, calls: called }) => summary !== '' || called.length > 0)
  .map(({ calls: called, results, ...rest }): Turn => {
    return { role: 'assistant', ...rest, calls: called, results: results.slice(0, called.length) }
  })

const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    system: fc.option(text, { nil: undefined }),
    pairs: fc.array(fc.tuple(user, assistant), { maxLength: 3 }),
    last: user,
    tools: fc.uniqueArray(name, { maxLength: 3 }),
    choice: fc.constantFrom(undefined, 'auto', 'required', 'none', 'named'),
    schema: fc.boolean(),
    most: fc.option(fc.integer({ min: 16, max: 4096 }), { nil: undefined }),
  })
  .map(({ system, pairs, last, tools, choice, schema, most }) => {
    const called = pairs
      .flat()
      .flatMap((turn) => (turn.role === 'assistant' ? turn.calls.map((call) => call.name) : []))
    const declared = [...new Set([...tools, ...called])]
    return {
      turns: [...(system === undefined ? [] : [{ role: 'system' as const, text: system }]), ...pairs.flat(), last],
      tools: declared,
      choice: declared.length === 0 ? undefined : choice,
      // A forced call and a response format exclude each other; with some vendors also a format and functions.
      schema: schema && declared.length === 0,
      most,
    }
  })

const SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' }, count: { type: 'integer' } },
  required: ['answer', 'count'],
  additionalProperties: false,
}
const PARAMETERS = {
  type: 'object',
  properties: { city: { type: 'string', description: 'Where.' } },
  required: ['city'],
}

function bodyOf({ turns, tools, choice, schema, most }: Conversation, model: string): Record<string, unknown> {
  const messages = turns.flatMap((turn): object[] => {
    if (turn.role !== 'assistant') {
      if (turn.role === 'system' || turn.image === undefined) return [{ role: turn.role, content: turn.text }]
      const picture = { type: 'image_url', image_url: { url: turn.image } }
      return [{ role: 'user', content: [{ type: 'text', text: turn.text }, picture] }]
    }
    const tool_calls = turn.calls.map(({ id, name: called, args: given }) => {
      return { id, type: 'function', function: { name: called, arguments: JSON.stringify(given) } }
    })
    const summary = { role: 'assistant', content: turn.text === '' ? null : turn.text }
    if (tool_calls.length === 0) return [summary]
    const results = turn.calls.map(({ id }, at) => ({
      role: 'tool',
      tool_call_id: id,
      content: turn.results[at] ?? '',
    }))
    return [{ ...summary, tool_calls }, ...results]
  })
  const named = { type: 'function', function: { name: tools[0] } }
  return {
    model,
    messages,
    ...(tools.length > 0 && {
      tools: tools.map((one) => ({
        type: 'function',
        function: { name: one, description: `Does ${one}.`, parameters: PARAMETERS },
      })),
    }),
    ...(choice !== undefined && { tool_choice: choice === 'named' ? named : choice }),
    ...(schema && {
      response_format: { type: 'json_schema', json_schema: { name: 'form', schema: SCHEMA, strict: true } },
    }),
    ...(most !== undefined && { max_tokens: most }),
  }
}

/** The amount of white space and the number of parts have no meaning. */
const termsOf = (summary: string) => summary.split(/\s+/).filter(Boolean)

type Part = { type: string; text?: string; image_url?: { url: string } }
type Message = {
  role: string
  content?: string | Part[] | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

/** The meaning of a list of messages: the role, text, calls and results of each. */
function meaningOf(messages: Message[]): object[] {
  const summary: { role: string; texts: string[]; images: string[]; calls: object[] }[] = []
  const called: string[] = []
  const results: object[] = []
  for (const { role, content, tool_calls = [], tool_call_id } of messages) {
    const parts: Part[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
    const texts = parts.flatMap((part) => termsOf(part.text ?? ''))
    if (role === 'tool') {
      results.push({ call: called.lastIndexOf(tool_call_id ?? ''), texts })
      continue
    }
    const who = role === 'developer' ? 'system' : role
    const images = parts.flatMap((part) => (part.image_url ? [part.image_url.url] : []))
    const before = summary.at(-1)
    const mine = before?.role === who ? before : { role: who, texts: [], images: [], calls: [] }
    if (mine !== before) summary.push(mine)
    mine.texts.push(...texts)
    mine.images.push(...images)
    for (const { id, function: requested } of tool_calls) {
      called.push(id)
      mine.calls.push({ name: requested.name, args: JSON.parse(requested.arguments) })
    }
  }
  return [...summary, { results }]
}

const choiceOf = (choice: unknown) =>
  typeof choice === 'object' && choice !== null && 'function' in choice ? choice.function : (choice ?? 'auto')

describe('a translated conversation', () => {
  for (const { kind } of KINDS) {
    test(`arrives at the provider without loss through ${kind}`, async () => {
      await fc.assert(
        fc.asyncProperty(conversation, fc.boolean(), async (summary, isStream) => {
          const body = bodyOf(summary, `${kind}/m`)
          const first = vendor.requests.length
          vendor.otherwise(
            isStream ? stream([chunk({ content: 'ok' }), chunk({}, 'stop'), usageChunk()]) : whole(completion('ok')),
          )
          const response = await near.gateway.call('/v1/chat/completions', { json: { ...body, stream: isStream } })
          expect([response.status, response.ok ? '' : await response.text()]).toEqual([200, ''])
          await response.text()
          const requested = vendor.requests[first]?.json() as Record<string, unknown>
          expect(meaningOf(requested.messages as Message[])).toEqual(meaningOf(body.messages as Message[]))
          const namesOf = ({ tools = [] }: { tools?: { function: { name: string; description: string } }[] }) =>
            tools.map((tool) => [tool.function.name, tool.function.description])
          expect(namesOf(requested)).toEqual(namesOf(body))
          if (summary.tools.length > 0)
            expect(choiceOf(requested.tool_choice)).toEqual(choiceOf(body.tool_choice) as object)
          if (summary.most !== undefined)
            expect(requested.max_tokens ?? requested.max_completion_tokens).toBe(summary.most)
          const format = requested.response_format as { json_schema?: { schema: unknown } } | undefined
          expect(format?.json_schema?.schema).toEqual(summary.schema ? SCHEMA : undefined)
        }),
        { seed: SEED, numRuns: RUNS },
      )
    }, 120_000)
  }
})

type Answer = {
  reasoning: string
  text: string
  calls: Call[]
  finish: 'stop' | 'length' | 'tool_calls'
  usage: { prompt: number; cached: number; completion: number; reasoning: number }
  /** Where the texts are split into chunks. */
  cuts: number[]
}

const answer: fc.Arbitrary<Answer> = fc
  .record({
    reasoning: fc.oneof(fc.constant(''), text),
    text: fc.oneof(fc.constant(''), text),
    calls,
    isCut: fc.boolean(),
    usage: fc.record({ prompt: fc.nat(9999), cached: fc.nat(999), completion: fc.nat(9999), reasoning: fc.nat(999) }),
    cuts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
  })
  .filter(({ text: summary, calls: called }) => summary !== '' || called.length > 0)
  .map(({ isCut, usage, ...rest }) => ({
    ...rest,
    finish: rest.calls.length > 0 ? ('tool_calls' as const) : isCut ? ('length' as const) : ('stop' as const),
    usage: {
      prompt: usage.prompt + usage.cached + 1,
      cached: usage.cached,
      completion: usage.completion + usage.reasoning + 1,
      reasoning: rest.reasoning === '' ? 0 : usage.reasoning,
    },
  }))

function* pieces(whole: string, cuts: number[]): Generator<string> {
  const signs = [...whole]
  for (let at = 0, turn = 0; at < signs.length; turn++) {
    const length = cuts[turn % cuts.length] ?? 1
    yield signs.slice(at, at + length).join('')
    at += length
  }
}

const usageOf = ({ usage }: Answer) => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  prompt_tokens_details: { cached_tokens: usage.cached },
  completion_tokens_details: { reasoning_tokens: usage.reasoning },
})

/** The stream as a provider would send it. The pieces of parallel calls alternate. */
function chunksOf(summary: Answer): object[] {
  const out: object[] = [chunk({ role: 'assistant', content: '' })]
  for (const piece of pieces(summary.reasoning, summary.cuts)) out.push(chunk({ reasoning_content: piece }))
  for (const piece of pieces(summary.text, summary.cuts)) out.push(chunk({ content: piece }))
  for (const [index, { id, name: called }] of summary.calls.entries()) {
    out.push(chunk({ tool_calls: [{ index, id, type: 'function', function: { name: called, arguments: '' } }] }))
  }
  const parts = summary.calls.map((call) => [...pieces(JSON.stringify(call.args), summary.cuts)])
  for (let at = 0; parts.some((some) => at < some.length); at++) {
    for (const [index, some] of parts.entries()) {
      if (some[at] !== undefined) out.push(chunk({ tool_calls: [{ index, function: { arguments: some[at] } }] }))
    }
  }
  return [...out, chunk({}, summary.finish), usageChunk(usageOf(summary))]
}

const wholeOf = (summary: Answer) =>
  completion(summary.text, {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: summary.text === '' ? null : summary.text,
          ...(summary.reasoning !== '' && { reasoning_content: summary.reasoning }),
          ...(summary.calls.length > 0 && {
            tool_calls: summary.calls.map(({ id, name: called, args: given }) => {
              return { id, type: 'function', function: { name: called, arguments: JSON.stringify(given) } }
            }),
          }),
        },
        logprobs: null,
        finish_reason: summary.finish,
      },
    ],
    usage: usageOf(summary),
  })

type Received = {
  reasoning: string
  text: string
  calls: { name: string; arguments: string }[]
  finish: string
  usage: object
}

function receivedWhole(body: Record<string, never>): Received {
  const { choices, usage } = body as unknown as {
    choices: { message: Message & { reasoning_content?: string }; finish_reason: string }[]
    usage: object
  }
  const [
    { message, finish_reason } = {
      message: { role: '' } as Message & { reasoning_content?: string },
      finish_reason: '',
    },
  ] = choices
  return {
    reasoning: message.reasoning_content ?? '',
    text: typeof message.content === 'string' ? message.content : '',
    calls: (message.tool_calls ?? []).map((call) => call.function),
    finish: finish_reason,
    usage,
  }
}

function receivedStream(events: string): Received {
  const received: Received = { reasoning: '', text: '', calls: [], finish: '', usage: {} }
  for (const event of events.split('\n\n')) {
    if (!event.startsWith('data: {')) continue
    const { choices, usage, error } = JSON.parse(event.slice(6))
    if (error) throw new Error(JSON.stringify(error))
    if (usage) received.usage = usage
    for (const { delta, finish_reason } of choices) {
      received.reasoning += delta.reasoning_content ?? ''
      received.text += delta.content ?? ''
      for (const { index, function: part } of delta.tool_calls ?? []) {
        received.calls[index] ??= { name: '', arguments: '' }
        const call = received.calls[index]
        call.name += part.name ?? ''
        call.arguments += part.arguments ?? ''
      }
      if (finish_reason) received.finish = finish_reason
    }
  }
  return received
}

describe('a translated response', () => {
  for (const { kind } of KINDS) {
    for (const isStream of [false, true]) {
      test(`arrives at the client without loss, ${isStream ? 'streamed' : 'whole'}, through ${kind}`, async () => {
        await fc.assert(
          fc.asyncProperty(answer, async (summary) => {
            vendor.otherwise(isStream ? stream(chunksOf(summary)) : whole(wholeOf(summary)))
            const tools = [...new Set(summary.calls.map((call) => call.name))].map((one) => {
              return { type: 'function', function: { name: one, parameters: PARAMETERS } }
            })
            const body = {
              model: `${kind}/m`,
              messages: [{ role: 'user', content: 'Go.' }],
              stream: isStream,
              // Without it some providers do not return their reasoning.
              reasoning_effort: 'medium',
              ...(isStream && { stream_options: { include_usage: true } }),
              ...(tools.length > 0 && { tools }),
            }
            const response = await near.gateway.call('/v1/chat/completions', { json: body })
            const read = await response.text()
            expect([response.status, response.ok ? '' : read]).toEqual([200, ''])
            const received = isStream ? receivedStream(read) : receivedWhole(JSON.parse(read))
            expect({
              reasoning: received.reasoning,
              text: received.text,
              finish: received.finish,
              calls: received.calls.map((call) => [call.name, JSON.parse(call.arguments)]),
            }).toEqual({
              reasoning: summary.reasoning,
              text: summary.text,
              finish: summary.finish,
              calls: summary.calls.map((call) => [call.name, call.args]),
            })
            expect(received.usage).toMatchObject(usageOf(summary))
          }),
          { seed: SEED, numRuns: RUNS },
        )
      }, 120_000)
    }
  }
})
