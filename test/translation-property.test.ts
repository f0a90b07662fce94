/**
 * Conversations and answers that nobody thought of, carried through every dialect and back: a client's request goes
 * through one gateway, in the dialect of its provider's kind to a second gateway, and from there to a vendor of chat
 * completions. What the vendor is asked means what the client said, and what the client gets is what the vendor said.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ProviderKind } from '../src/config/provider-kinds.ts'
import { openPort, type Port } from './kit/served.ts'
import { chunk, completion, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

const SEED = 20_261_121
const RUNS = 100

/** Each kind, and where the second gateway speaks its dialect. */
const KINDS: { kind: ProviderKind; base(url: string): string }[] = [
  { kind: 'chatcompat', base: (url) => url },
  { kind: 'messages-compat', base: (url) => url.replace(/\/v1$/, '') },
  { kind: 'responses-compat', base: (url) => url },
  { kind: 'contentgen-compat', base: (url) => url.replace(/\/v1$/, '/v1beta') },
]

let vendor: Vendor
let far: Port
let near: Port
beforeAll(async () => {
  vendor = startVendor()
  far = await openPort({ sandbox: false, providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
  const providers = KINDS.map(({ kind, base }) => [kind, { kind, base_url: base(far.url), key: far.token }])
  const models = KINDS.map(({ kind }) => [`${kind}/m`, { targets: [{ provider: kind, model: 'v/m' }] }])
  near = await openPort({
    sandbox: false,
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(models),
  })
})
afterAll(async () => {
  await near.close()
  await far.close()
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
/** Words that survive being joined: some sign that is no blank is in them. */
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
  .filter(({ text: said, calls: called }) => said !== '' || called.length > 0)
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
      // A demanded call and a demanded form exclude each other, at some vendors also a form and functions.
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
    const said = { role: 'assistant', content: turn.text === '' ? null : turn.text }
    if (tool_calls.length === 0) return [said]
    const results = turn.calls.map(({ id }, at) => ({
      role: 'tool',
      tool_call_id: id,
      content: turn.results[at] ?? '',
    }))
    return [{ ...said, tool_calls }, ...results]
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

/** How many blanks there are, and in how many parts a text comes, is no meaning. */
const wordsOf = (said: string) => said.split(/\s+/).filter(Boolean)

type Part = { type: string; text?: string; image_url?: { url: string } }
type Message = {
  role: string
  content?: string | Part[] | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

/** What a list of messages says, whoever wrote it: who spoke, which words, which calls and what came of each. */
function meaningOf(messages: Message[]): object[] {
  const said: { role: string; words: string[]; images: string[]; calls: object[] }[] = []
  const called: string[] = []
  const results: object[] = []
  for (const { role, content, tool_calls = [], tool_call_id } of messages) {
    const parts: Part[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
    const words = parts.flatMap((part) => wordsOf(part.text ?? ''))
    if (role === 'tool') {
      results.push({ call: called.lastIndexOf(tool_call_id ?? ''), words })
      continue
    }
    const who = role === 'developer' ? 'system' : role
    const images = parts.flatMap((part) => (part.image_url ? [part.image_url.url] : []))
    const before = said.at(-1)
    const mine = before?.role === who ? before : { role: who, words: [], images: [], calls: [] }
    if (mine !== before) said.push(mine)
    mine.words.push(...words)
    mine.images.push(...images)
    for (const { id, function: asked } of tool_calls) {
      called.push(id)
      mine.calls.push({ name: asked.name, args: JSON.parse(asked.arguments) })
    }
  }
  return [...said, { results }]
}

const choiceOf = (choice: unknown) =>
  typeof choice === 'object' && choice !== null && 'function' in choice ? choice.function : (choice ?? 'auto')

describe('a conversation', () => {
  for (const { kind } of KINDS) {
    test(`means at the vendor what the client said, through ${kind}`, async () => {
      await fc.assert(
        fc.asyncProperty(conversation, fc.boolean(), async (said, isStream) => {
          const body = bodyOf(said, `${kind}/m`)
          const first = vendor.requests.length
          vendor.otherwise(
            isStream ? stream([chunk({ content: 'ok' }), chunk({}, 'stop'), usageChunk()]) : whole(completion('ok')),
          )
          const response = await near.gateway.call('/v1/chat/completions', { json: { ...body, stream: isStream } })
          expect([response.status, response.ok ? '' : await response.text()]).toEqual([200, ''])
          await response.text()
          const asked = vendor.requests[first]?.json() as Record<string, unknown>
          expect(meaningOf(asked.messages as Message[])).toEqual(meaningOf(body.messages as Message[]))
          const namesOf = ({ tools = [] }: { tools?: { function: { name: string; description: string } }[] }) =>
            tools.map((tool) => [tool.function.name, tool.function.description])
          expect(namesOf(asked)).toEqual(namesOf(body))
          if (said.tools.length > 0) expect(choiceOf(asked.tool_choice)).toEqual(choiceOf(body.tool_choice) as object)
          if (said.most !== undefined) expect(asked.max_tokens ?? asked.max_completion_tokens).toBe(said.most)
          const format = asked.response_format as { json_schema?: { schema: unknown } } | undefined
          expect(format?.json_schema?.schema).toEqual(said.schema ? SCHEMA : undefined)
        }),
        { seed: SEED, numRuns: RUNS },
      )
    }, 60_000)
  }
})

type Answer = {
  reasoning: string
  text: string
  calls: Call[]
  finish: 'stop' | 'length' | 'tool_calls'
  usage: { prompt: number; cached: number; completion: number; reasoning: number }
  /** Where the texts are cut into chunks. */
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
  .filter(({ text: said, calls: called }) => said !== '' || called.length > 0)
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

/** The stream as a vendor would send it; the pieces of parallel calls alternate. */
function chunksOf(said: Answer): object[] {
  const out: object[] = [chunk({ role: 'assistant', content: '' })]
  for (const piece of pieces(said.reasoning, said.cuts)) out.push(chunk({ reasoning_content: piece }))
  for (const piece of pieces(said.text, said.cuts)) out.push(chunk({ content: piece }))
  for (const [index, { id, name: called }] of said.calls.entries()) {
    out.push(chunk({ tool_calls: [{ index, id, type: 'function', function: { name: called, arguments: '' } }] }))
  }
  const parts = said.calls.map((call) => [...pieces(JSON.stringify(call.args), said.cuts)])
  for (let at = 0; parts.some((some) => at < some.length); at++) {
    for (const [index, some] of parts.entries()) {
      if (some[at] !== undefined) out.push(chunk({ tool_calls: [{ index, function: { arguments: some[at] } }] }))
    }
  }
  return [...out, chunk({}, said.finish), usageChunk(usageOf(said))]
}

const wholeOf = (said: Answer) =>
  completion(said.text, {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: said.text === '' ? null : said.text,
          ...(said.reasoning !== '' && { reasoning_content: said.reasoning }),
          ...(said.calls.length > 0 && {
            tool_calls: said.calls.map(({ id, name: called, args: given }) => {
              return { id, type: 'function', function: { name: called, arguments: JSON.stringify(given) } }
            }),
          }),
        },
        logprobs: null,
        finish_reason: said.finish,
      },
    ],
    usage: usageOf(said),
  })

type Heard = {
  reasoning: string
  text: string
  calls: { name: string; arguments: string }[]
  finish: string
  usage: object
}

function heardWhole(body: Record<string, never>): Heard {
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

function heardStream(events: string): Heard {
  const heard: Heard = { reasoning: '', text: '', calls: [], finish: '', usage: {} }
  for (const event of events.split('\n\n')) {
    if (!event.startsWith('data: {')) continue
    const { choices, usage, error } = JSON.parse(event.slice(6))
    if (error) throw new Error(JSON.stringify(error))
    if (usage) heard.usage = usage
    for (const { delta, finish_reason } of choices) {
      heard.reasoning += delta.reasoning_content ?? ''
      heard.text += delta.content ?? ''
      for (const { index, function: part } of delta.tool_calls ?? []) {
        heard.calls[index] ??= { name: '', arguments: '' }
        const call = heard.calls[index]
        call.name += part.name ?? ''
        call.arguments += part.arguments ?? ''
      }
      if (finish_reason) heard.finish = finish_reason
    }
  }
  return heard
}

describe('an answer', () => {
  for (const { kind } of KINDS) {
    for (const isStream of [false, true]) {
      test(`is to the client what the vendor said, ${isStream ? 'streamed' : 'whole'}, through ${kind}`, async () => {
        await fc.assert(
          fc.asyncProperty(answer, async (said) => {
            vendor.otherwise(isStream ? stream(chunksOf(said)) : whole(wholeOf(said)))
            const tools = [...new Set(said.calls.map((call) => call.name))].map((one) => {
              return { type: 'function', function: { name: one, parameters: PARAMETERS } }
            })
            const body = {
              model: `${kind}/m`,
              messages: [{ role: 'user', content: 'Go.' }],
              stream: isStream,
              // Without it some vendors keep their reasoning to themselves.
              reasoning_effort: 'medium',
              ...(isStream && { stream_options: { include_usage: true } }),
              ...(tools.length > 0 && { tools }),
            }
            const response = await near.gateway.call('/v1/chat/completions', { json: body })
            const read = await response.text()
            expect([response.status, response.ok ? '' : read]).toEqual([200, ''])
            const heard = isStream ? heardStream(read) : heardWhole(JSON.parse(read))
            expect({
              reasoning: heard.reasoning,
              text: heard.text,
              finish: heard.finish,
              calls: heard.calls.map((call) => [call.name, JSON.parse(call.arguments)]),
            }).toEqual({
              reasoning: said.reasoning,
              text: said.text,
              finish: said.finish,
              calls: said.calls.map((call) => [call.name, call.args]),
            })
            expect(heard.usage).toMatchObject(usageOf(said))
          }),
          { seed: SEED, numRuns: RUNS },
        )
      }, 60_000)
    }
  }
})
