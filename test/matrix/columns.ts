/** The columns of the matrix: the chat calls, each with its checks. */
import { expect } from 'bun:test'
import { BOTH_TOOLS, CALLS, chatInputOf, PIXEL, PLACE, QUESTION, RESULTS, TOOLS } from './inputs.ts'
import { CACHED, INPUT, THOUGHT } from './model-script.ts'
import type { Target } from './targets.ts'
import type { ChatInput, Client, Reply, Row } from './types.ts'

export type Cell = {
  row: Row
  client: Client
  target: Target
  /** The same client with a token that was never issued. */
  unauthorized: Client
}

export type Column = {
  name: string
  group:
    | 'Chat responses'
    | 'Tools, structured output, images and reasoning'
    | 'Errors and disconnects'
    | 'Token counts, stored responses and models'
  /** Whether the client has this call. */
  has?(client: Client, row: Row): boolean
  check(cell: Cell): Promise<void>
}

const unsupported = (row: Row, what: Row['unsupported'][number]) => row.unsupported.includes(what)

/** The response of every target to a plain question. */
function expectAnswer(reply: Reply, { target }: Cell): void {
  expect(reply.text).toContain('simulated')
  if (target.vendor) expect(reply.text).toBe(`A simulated vendor received 1 messages, the last of them: ${QUESTION}`)
  expect([reply.finish, reply.calls]).toEqual(['stop', []])
  if (reply.model !== undefined) expect(reply.model).toBe(target.model)
}

function expectUsage({ usage }: Reply, { target, row }: Cell): void {
  if (!usage) throw new Error('No usage was reported.')
  expect([usage.input > 0, usage.output > 0]).toEqual([true, true])
  if (!target.vendor) return
  expect(usage.input).toBe(unsupported(row, 'cached_input') ? INPUT - CACHED : INPUT)
  if (usage.cached !== undefined) expect(usage.cached).toBe(CACHED)
}

const called = (reply: Reply) => reply.calls.map(({ name, args }) => ({ name, args }))

/** A round trip: two parallel calls, their results, and a response with both results. */
async function expectRoundTrip(
  cell: Cell,
  chatInput: ChatInput,
  answer: (chatInput: ChatInput) => Promise<Reply>,
): Promise<void> {
  const first = await answer(chatInput)
  expect([first.finish, called(first)]).toEqual(['tool_calls', CALLS])
  const ids = first.calls.map(({ id }) => id)
  expect([new Set(ids).size, ids.every((id) => id.length > 0)]).toEqual([2, true])
  const results = first.calls.map(({ id, name }, at) => ({ id, name, text: RESULTS[at] ?? '' }))
  const second = await answer({
    ...chatInput,
    turns: [...chatInput.turns, { role: 'assistant', reply: first }, { role: 'results', results }],
  })
  expect(second.finish).toBe('stop')
  // Some clients wrap a result in an object.
  const patterns = CALLS.map(({ name }, at) => `"${name}" answered: .*${RESULTS[at]}`)
  expect(second.text).toMatch(new RegExp(patterns.join('[^]*')))
  expectUsage(second, cell)
}

async function expectPlace(value: unknown): Promise<void> {
  expect(value).toEqual({ city: 'Paris', degrees: expect.any(Number), is_raining: expect.any(Boolean) })
}

function expectThought(reply: Reply, { target }: Cell): void {
  expect(reply.text).toContain('simulated')
  if (target.vendor) expect(reply.reasoning).toBe(THOUGHT)
  expect(reply.reasoning?.length).toBeGreaterThan(20)
  if (reply.usage?.reasoning !== undefined) expect(reply.usage.reasoning).toBeGreaterThan(0)
}

/** DeepSeek and Moonshot refuse calls of an earlier turn without their reasoning. */
function expectThoughtReturned({ target, row }: Cell): void {
  if (target.name !== 'chatcompat' || unsupported(row, 'reasoning_history')) return
  const messages = target.vendor?.requests.at(-1)?.json().messages as object[]
  expect(messages.find((message) => 'tool_calls' in message)).toMatchObject({ reasoning_content: THOUGHT })
}

/** The error of a refused call. */
async function refusal(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('The call succeeded.')
}

/** A whole and a streamed request are refused equally, with the client's own error. */
async function expectFault(
  client: Client,
  chatInput: ChatInput,
  { status, pattern }: { status: number; pattern: RegExp },
): Promise<void> {
  for (const call of [client.whole, client.stream]) {
    const fault = client.fault(await refusal(call(chatInput)), status)
    expect(fault).toEqual({ status, message: expect.stringMatching(pattern), is_own_class: true })
  }
}

const ANSWERS: Omit<Column, 'group'>[] = [
  {
    name: 'complete response',
    check: async (cell) => expectAnswer(await cell.client.whole(chatInputOf(cell.target.model)), cell),
  },
  {
    name: 'stream',
    async check(cell) {
      const pieces: string[] = []
      const reply = await cell.client.stream(chatInputOf(cell.target.model), { onText: (text) => pieces.push(text) })
      expectAnswer(reply, cell)
      // The number of pieces depends on how they arrive. The test with an interrupted stream checks that they arrive
      // one by one.
      expect(pieces.join('')).toBe(reply.text)
      expect((await cell.client.whole(chatInputOf(cell.target.model))).text).toBe(reply.text)
    },
  },
  {
    name: "stream collected by the client's helper",
    has: (client) => client.collected !== undefined,
    check: async (cell) => expectAnswer((await cell.client.collected?.(chatInputOf(cell.target.model))) as Reply, cell),
  },
  {
    name: 'system message and history',
    async check({ client, target }) {
      const first = await client.whole(chatInputOf(target.model))
      const reply = await client.whole({
        ...chatInputOf(target.model),
        system: 'Speak like a keeper of gates.',
        turns: [
          ...chatInputOf(target.model).turns,
          { role: 'assistant', reply: first },
          { role: 'user', text: 'And then?' },
        ],
      })
      expect(reply.text).toContain('simulated')
      if (target.vendor)
        expect(reply.text).toMatch(/received [34] messages.*And then\? The system prompt was: Speak like a keeper/)
    },
  },
  {
    name: 'token limit',
    async check({ client, target }) {
      const chatInput = { ...chatInputOf(target.model, 'Speak.\n@sandbox tokens=40'), max_tokens: 16 }
      for (const reply of [await client.whole(chatInput), await client.stream(chatInput)]) {
        expect([reply.finish, reply.text.length > 0]).toEqual(['length', true])
      }
    },
  },
  {
    name: 'stop sequence',
    has: (_, row) => !unsupported(row, 'stop'),
    async check({ client, target, row }) {
      const chatInput = { ...chatInputOf(target.model), stop: 'simulated' }
      if (target.unsupported.includes('stop')) return expectFault(client, chatInput, { status: 400, pattern: /stop/ })
      // The kind of stop is only known if both sides can express it.
      const isReported = target.name === 'messages-compat' && !unsupported(row, 'stop_sequence')
      for (const reply of [await client.whole(chatInput), await client.stream(chatInput)]) {
        expect(reply.text).not.toContain('simulated')
        expect(reply.finish).toBe(isReported ? 'stop_sequence' : 'stop')
      }
    },
  },
  {
    name: 'usage',
    async check(cell) {
      const whole = await cell.client.whole(chatInputOf(cell.target.model))
      const streamed = await cell.client.stream(chatInputOf(cell.target.model))
      expectUsage(whole, cell)
      expect(streamed.usage).toEqual(whole.usage)
    },
  },
]

const FORMS: Omit<Column, 'group'>[] = [
  {
    name: 'parallel tool calls and results',
    check: (cell) =>
      expectRoundTrip(cell, { ...chatInputOf(cell.target.model, BOTH_TOOLS), tools: TOOLS }, cell.client.whole),
  },
  {
    name: 'streamed tool calls',
    check: (cell) =>
      expectRoundTrip(cell, { ...chatInputOf(cell.target.model, BOTH_TOOLS), tools: TOOLS }, (chatInput) =>
        cell.client.stream(chatInput),
      ),
  },
  {
    name: 'required tool call',
    async check({ client, target }) {
      const reply = await client.whole({
        ...chatInputOf(target.model, 'Please use get_time.'),
        tools: TOOLS,
        tool_choice: 'required',
      })
      expect([reply.finish, called(reply)]).toEqual(['tool_calls', CALLS.slice(1)])
    },
  },
  {
    name: 'structured output',
    async check({ client, target }) {
      const chatInput = { ...chatInputOf(target.model), schema: PLACE }
      await expectPlace(JSON.parse((await client.whole(chatInput)).text))
      await expectPlace(JSON.parse((await client.stream(chatInput)).text))
    },
  },
  {
    name: "structured output parsed by the client's helper",
    has: (client) => client.parsed !== undefined,
    check: async ({ client, target }) =>
      expectPlace(await client.parsed?.({ ...chatInputOf(target.model), schema: PLACE })),
  },
  {
    name: 'image input',
    async check({ client, target }) {
      const turns: ChatInput['turns'] = [{ role: 'user', text: 'What is on it?', picture: PIXEL }]
      const { text } = await client.whole({ model: target.model, turns })
      expect(text).toContain(target.vendor ? 'With the question came a picture (image/png, 70 bytes)' : '1 x 1 pixels')
    },
  },
  {
    name: 'reasoning',
    has: (_, row) => !unsupported(row, 'reasoning'),
    async check(cell) {
      const chatInput = { ...chatInputOf(cell.target.thinker), is_thinking: true, max_tokens: 3000 }
      expectThought(await cell.client.whole(chatInput), cell)
      expectThought(await cell.client.stream(chatInput), cell)
    },
  },
  {
    name: 'reasoning and tool calls sent back with results',
    async check(cell) {
      const { client, target } = cell
      const chatInput = {
        ...chatInputOf(target.thinker, BOTH_TOOLS),
        tools: TOOLS,
        is_thinking: true,
        max_tokens: 3000,
      }
      await expectRoundTrip(cell, chatInput, client.whole)
      expectThoughtReturned(cell)
      await expectRoundTrip(cell, chatInput, (one) => client.stream(one))
      expectThoughtReturned(cell)
    },
  },
]

const FAILURES: Omit<Column, 'group'>[] = [
  {
    name: '400 from the gateway',
    // A short name that fits several models. No client checks names.
    check: ({ client }) => expectFault(client, chatInputOf('m'), { status: 400, pattern: /chatcompat\/m/ }),
  },
  {
    name: '400 from the provider',
    check: ({ client, target }) =>
      expectFault(client, chatInputOf(target.model, 'Fail.\n@sandbox status=400'), {
        status: 400,
        pattern: /rejected/,
      }),
  },
  {
    name: '401',
    check: ({ unauthorized, target }) =>
      expectFault(unauthorized, chatInputOf(target.model), { status: 401, pattern: /token|key/i }),
  },
  {
    name: '404',
    check: ({ client, target }) =>
      expectFault(client, chatInputOf(`${target.model}-unknown`), { status: 404, pattern: /unknown/ }),
  },
  {
    name: '429',
    check: ({ client, target }) =>
      expectFault(client, chatInputOf(target.model, 'Fail.\n@sandbox status=429'), { status: 429, pattern: /./ }),
  },
  {
    name: 'interrupted stream raises an error',
    has: (_, row) => !unsupported(row, 'stream_error'),
    async check({ client, target }) {
      for (const fault of ['cut_after', 'error_after']) {
        let text = ''
        const onText = (piece: string) => {
          text += piece
          target.vendor?.breakStream()
        }
        const chatInput = chatInputOf(target.model, `Speak.\n@sandbox tokens=20 ${fault}=6`)
        expect(await refusal(client.stream(chatInput, { onText }))).toBeInstanceOf(Error)
        expect(text).not.toBe('')
      }
    },
  },
  {
    name: 'disconnect aborts the provider stream',
    async check({ client, target }) {
      const leaving = new AbortController()
      const count = (target.vendor?.requests.length ?? 0) + 1
      const chatInput = chatInputOf(target.model, 'Speak.\n@sandbox tokens=20 hang_after=6')
      const watch = { signal: leaving.signal, onText: () => leaving.abort() }
      // Some clients throw an abort error, others just end.
      const ended = await client.stream(chatInput, watch).catch((error: unknown) => error)
      if (ended instanceof Error) expect(`${ended.name} ${ended.message}`).toMatch(/abort/i)
      else expect((ended as Reply).finish).not.toBe('stop')
      await (await target.vendor?.request(count))?.aborted
    },
  },
]

const OTHER_CALLS: Omit<Column, 'group'>[] = [
  {
    name: 'count tokens',
    has: (client) => client.count !== undefined,
    async check({ client, target }) {
      const short = await client.count?.(chatInputOf(target.model))
      expect(short).toBeGreaterThan(2)
    },
  },
  {
    name: 'stored responses (continue, read, delete)',
    has: (client) => client.stored !== undefined,
    async check({ client, target }) {
      const stored = await client.stored?.(chatInputOf(target.model), 'And then?')
      expect(stored?.reply.text).toContain('simulated')
      if (target.vendor)
        expect(stored?.reply.text).toBe('A simulated vendor received 3 messages, the last of them: And then?')
      expect([stored?.found, stored?.itemCount]).toEqual([stored?.reply, 3])
      expect(client.fault(stored?.deletedError, 404)).toMatchObject({ status: 404, is_own_class: true })
    },
  },
  {
    name: 'list of models',
    has: (client) => client.list !== undefined,
    check: async ({ client, target }) => expect(await client.list?.()).toContain(target.model),
  },
  {
    name: 'one model',
    has: (client) => client.retrieve !== undefined,
    check: async ({ client, target }) => expect(await client.retrieve?.(target.model)).toBe(target.model),
  },
]

const grouped = (group: Column['group'], columns: Omit<Column, 'group'>[]): Column[] =>
  columns.map((column) => ({ ...column, group }))

export const COLUMNS: Column[] = [
  ...grouped('Chat responses', ANSWERS),
  ...grouped('Tools, structured output, images and reasoning', FORMS),
  ...grouped('Errors and disconnects', FAILURES),
  ...grouped('Token counts, stored responses and models', OTHER_CALLS),
]
