/** The columns of the matrix: the calls of chat, each with what must be true of the answer. */
import { expect } from 'bun:test'
import { asks, BOTH_TOOLS, CALLS, PIXEL, PLACE, QUESTION, RESULTS, TOOLS } from './asks.ts'
import { CACHED, INPUT, THOUGHT } from './mind.ts'
import type { Target } from './targets.ts'
import type { Ask, Client, Row, Told } from './words.ts'

export type Cell = {
  row: Row
  client: Client
  target: Target
  /** The same client with a token that nobody has issued. */
  stranger: Client
}

export type Column = {
  name: string
  group:
    | 'Chat responses'
    | 'Tools, structured output, images and reasoning'
    | 'Errors and disconnects'
    | 'Token counts, stored responses and models'
  /** Whether the client has such a call at all. */
  has?(client: Client, row: Row): boolean
  check(cell: Cell): Promise<void>
}

const lacks = (row: Row, what: Row['lacks'][number]) => row.lacks.includes(what)

/** An answer to a plain question, as every target gives it. */
function expectAnswer(told: Told, { target }: Cell): void {
  expect(told.text).toContain('simulated')
  if (target.vendor) expect(told.text).toBe(`A simulated vendor heard 1 messages, the last of them: ${QUESTION}`)
  expect([told.finish, told.calls]).toEqual(['stop', []])
  if (told.model !== undefined) expect(told.model).toBe(target.model)
}

function expectUsage({ usage }: Told, { target }: Cell): void {
  if (!usage) throw new Error('No usage was told.')
  expect([usage.input > 0, usage.output > 0]).toEqual([true, true])
  if (!target.vendor) return
  expect(usage.input).toBe(INPUT)
  if (usage.cached !== undefined) expect(usage.cached).toBe(CACHED)
}

const called = (told: Told) => told.calls.map(({ name, args }) => ({ name, args }))

/** The whole way: two calls at once, their results, an answer with both results in it. */
async function expectRoundTrip(cell: Cell, ask: Ask, answer: (ask: Ask) => Promise<Told>): Promise<void> {
  const first = await answer(ask)
  expect([first.finish, called(first)]).toEqual(['tool_calls', CALLS])
  const ids = first.calls.map(({ id }) => id)
  expect([new Set(ids).size, ids.every((id) => id.length > 0)]).toEqual([2, true])
  const results = first.calls.map(({ id, name }, at) => ({ id, name, text: RESULTS[at] ?? '' }))
  const second = await answer({
    ...ask,
    turns: [...ask.turns, { role: 'assistant', told: first }, { role: 'results', results }],
  })
  expect(second.finish).toBe('stop')
  // Some clients wrap a result in an object.
  const said = CALLS.map(({ name }, at) => `"${name}" answered: .*${RESULTS[at]}`)
  expect(second.text).toMatch(new RegExp(said.join('[^]*')))
  expectUsage(second, cell)
}

async function expectPlace(value: unknown): Promise<void> {
  expect(value).toEqual({ city: 'Paris', degrees: expect.any(Number), is_raining: expect.any(Boolean) })
}

function expectThought(told: Told, { target }: Cell): void {
  expect(told.text).toContain('simulated')
  if (target.vendor) expect(told.reasoning).toBe(THOUGHT)
  expect(told.reasoning?.length).toBeGreaterThan(20)
  if (told.usage?.reasoning !== undefined) expect(told.usage.reasoning).toBeGreaterThan(0)
}

/** What a call is refused with. */
async function refusal(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('It was answered.')
}

/** Both ways to ask are refused in the same way, and in the client's own. */
async function expectFault(
  client: Client,
  ask: Ask,
  { status, says }: { status: number; says: RegExp },
): Promise<void> {
  for (const call of [client.whole, client.stream]) {
    const fault = client.fault(await refusal(call(ask)), status)
    expect(fault).toEqual({ status, message: expect.stringMatching(says), is_own_class: true })
  }
}

const ANSWERS: Omit<Column, 'group'>[] = [
  {
    name: 'complete response',
    check: async (cell) => expectAnswer(await cell.client.whole(asks(cell.target.model)), cell),
  },
  {
    name: 'stream',
    async check(cell) {
      const pieces: string[] = []
      const told = await cell.client.stream(asks(cell.target.model), { onText: (text) => pieces.push(text) })
      expectAnswer(told, cell)
      // How many there are depends on what came at once; that they come as they are said is seen where a stream breaks.
      expect(pieces.join('')).toBe(told.text)
      expect((await cell.client.whole(asks(cell.target.model))).text).toBe(told.text)
    },
  },
  {
    name: "stream collected by the client's helper",
    has: (client) => client.gathered !== undefined,
    check: async (cell) => expectAnswer((await cell.client.gathered?.(asks(cell.target.model))) as Told, cell),
  },
  {
    name: 'system message and history',
    async check({ client, target }) {
      const first = await client.whole(asks(target.model))
      const told = await client.whole({
        ...asks(target.model),
        system: 'Speak like a keeper of gates.',
        turns: [...asks(target.model).turns, { role: 'assistant', told: first }, { role: 'user', text: 'And then?' }],
      })
      expect(told.text).toContain('simulated')
      if (target.vendor) expect(told.text).toMatch(/heard [34] messages.*And then\? It was told: Speak like a keeper/)
    },
  },
  {
    name: 'token limit',
    async check({ client, target }) {
      const ask = { ...asks(target.model, 'Speak.\n@sandbox tokens=40'), max_tokens: 16 }
      for (const told of [await client.whole(ask), await client.stream(ask)]) {
        expect([told.finish, told.text.length > 0]).toEqual(['length', true])
      }
    },
  },
  {
    name: 'stop sequence',
    has: (_, row) => !lacks(row, 'stop'),
    async check({ client, target, row }) {
      const ask = { ...asks(target.model), stop: 'simulated' }
      if (target.lacks.includes('stop')) return expectFault(client, ask, { status: 400, says: /stop/ })
      // Which of the two it was can be told only where both sides have a word for it.
      const isTold = target.name === 'messages-compat' && !lacks(row, 'stop_sequence')
      for (const told of [await client.whole(ask), await client.stream(ask)]) {
        expect(told.text).not.toContain('simulated')
        expect(told.finish).toBe(isTold ? 'stop_sequence' : 'stop')
      }
    },
  },
  {
    name: 'usage',
    async check(cell) {
      const whole = await cell.client.whole(asks(cell.target.model))
      const streamed = await cell.client.stream(asks(cell.target.model))
      expectUsage(whole, cell)
      expect(streamed.usage).toEqual(whole.usage)
    },
  },
]

const FORMS: Omit<Column, 'group'>[] = [
  {
    name: 'parallel tool calls and results',
    check: (cell) => expectRoundTrip(cell, { ...asks(cell.target.model, BOTH_TOOLS), tools: TOOLS }, cell.client.whole),
  },
  {
    name: 'streamed tool calls',
    check: (cell) =>
      expectRoundTrip(cell, { ...asks(cell.target.model, BOTH_TOOLS), tools: TOOLS }, (ask) => cell.client.stream(ask)),
  },
  {
    name: 'required tool call',
    async check({ client, target }) {
      const told = await client.whole({
        ...asks(target.model, 'Please use get_time.'),
        tools: TOOLS,
        tool_choice: 'required',
      })
      expect([told.finish, called(told)]).toEqual(['tool_calls', CALLS.slice(1)])
    },
  },
  {
    name: 'structured output',
    async check({ client, target }) {
      const ask = { ...asks(target.model), schema: PLACE }
      await expectPlace(JSON.parse((await client.whole(ask)).text))
      await expectPlace(JSON.parse((await client.stream(ask)).text))
    },
  },
  {
    name: "structured output parsed by the client's helper",
    has: (client) => client.parsed !== undefined,
    check: async ({ client, target }) => expectPlace(await client.parsed?.({ ...asks(target.model), schema: PLACE })),
  },
  {
    name: 'image input',
    async check({ client, target }) {
      const turns: Ask['turns'] = [{ role: 'user', text: 'What is on it?', picture: PIXEL }]
      const { text } = await client.whole({ model: target.model, turns })
      expect(text).toContain(target.vendor ? 'With the question came a picture (image/png, 70 bytes)' : '1 x 1 pixels')
    },
  },
  {
    name: 'reasoning',
    has: (_, row) => !lacks(row, 'reasoning'),
    async check(cell) {
      const ask = { ...asks(cell.target.thinker), is_thinking: true, max_tokens: 3000 }
      expectThought(await cell.client.whole(ask), cell)
      expectThought(await cell.client.stream(ask), cell)
    },
  },
  {
    name: 'reasoning and tool calls sent back with results',
    async check(cell) {
      const { client, target } = cell
      const ask = { ...asks(target.thinker, BOTH_TOOLS), tools: TOOLS, is_thinking: true, max_tokens: 3000 }
      await expectRoundTrip(cell, ask, client.whole)
      await expectRoundTrip(cell, ask, (one) => client.stream(one))
    },
  },
]

const FAILURES: Omit<Column, 'group'>[] = [
  {
    name: '400 from the gateway',
    // A short name that fits several models; no client looks at names.
    check: ({ client }) => expectFault(client, asks('m'), { status: 400, says: /chatcompat\/m/ }),
  },
  {
    name: '400 from the provider',
    check: ({ client, target }) =>
      expectFault(client, asks(target.model, 'Fail.\n@sandbox status=400'), { status: 400, says: /refused/ }),
  },
  {
    name: '401',
    check: ({ stranger, target }) => expectFault(stranger, asks(target.model), { status: 401, says: /token|key/i }),
  },
  {
    name: '404',
    check: ({ client, target }) =>
      expectFault(client, asks(`${target.model}-unknown`), { status: 404, says: /unknown/ }),
  },
  {
    name: '429',
    check: ({ client, target }) =>
      expectFault(client, asks(target.model, 'Fail.\n@sandbox status=429'), { status: 429, says: /./ }),
  },
  {
    name: 'interrupted stream raises an error',
    async check({ client, target }) {
      for (const fault of ['cut_after', 'error_after']) {
        let text = ''
        const onText = (piece: string) => {
          text += piece
          target.vendor?.letBreak()
        }
        const ask = asks(target.model, `Speak.\n@sandbox tokens=20 ${fault}=6`)
        expect(await refusal(client.stream(ask, { onText }))).toBeInstanceOf(Error)
        expect(text).not.toBe('')
      }
    },
  },
  {
    name: 'disconnect aborts the provider stream',
    async check({ client, target }) {
      const leaving = new AbortController()
      const count = (target.vendor?.requests.length ?? 0) + 1
      const ask = asks(target.model, 'Speak.\n@sandbox tokens=20 hang_after=6')
      const watch = { signal: leaving.signal, onText: () => leaving.abort() }
      // Some clients throw their own error then, some just end.
      const ended = await client.stream(ask, watch).catch((error: unknown) => error)
      if (ended instanceof Error) expect(`${ended.name} ${ended.message}`).toMatch(/abort/i)
      else expect((ended as Told).finish).not.toBe('stop')
      await (await target.vendor?.request(count))?.gone
    },
  },
]

const AROUND: Omit<Column, 'group'>[] = [
  {
    name: 'count tokens',
    has: (client) => client.count !== undefined,
    async check({ client, target }) {
      const short = await client.count?.(asks(target.model))
      expect(short).toBeGreaterThan(2)
    },
  },
  {
    name: 'stored responses (continue, read, delete)',
    has: (client) => client.kept !== undefined,
    async check({ client, target }) {
      const kept = await client.kept?.(asks(target.model), 'And then?')
      expect(kept?.told.text).toContain('simulated')
      if (target.vendor)
        expect(kept?.told.text).toBe('A simulated vendor heard 3 messages, the last of them: And then?')
      expect([kept?.found, kept?.asked]).toEqual([kept?.told, 3])
      expect(client.fault(kept?.gone, 404)).toMatchObject({ status: 404, is_own_class: true })
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
  ...grouped('Token counts, stored responses and models', AROUND),
]
