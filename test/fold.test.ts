/** A random response, streamed by any kind of provider and split anywhere, is the same for a client of any dialect. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anthropic1 } from './matrix/clients/anthropic-1.ts'
import { genai3 } from './matrix/clients/genai-3.ts'
import { openai7 } from './matrix/clients/openai-7.ts'
import { openai7Responses } from './matrix/clients/openai-7-responses.ts'
import { type MatrixGateway, openMatrixGateway } from './matrix/gateway.ts'
import { chatInputOf, TOOLS } from './matrix/inputs.ts'
import type { ScriptedResponse } from './matrix/model-script.ts'
import { TARGET_NAMES } from './matrix/targets.ts'
import type { Reply, Row } from './matrix/types.ts'

/** One client of each dialect. */
const ROWS: Row[] = [openai7, openai7Responses, anthropic1, genai3]
const VENDORS = TARGET_NAMES.filter((name) => name !== 'sandbox')

let current: ScriptedResponse
let bytes: number | undefined
let gateway: MatrixGateway
beforeAll(async () => {
  gateway = await openMatrixGateway({ respond: () => current, chunkBytes: () => bytes ?? Number.MAX_SAFE_INTEGER })
})
afterAll(() => gateway.close())

const piece = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
  fc.constantFrom('\n\n', 'data: x', '": ', '\\', '\u2028', '[DONE]', ' ', '<think>', '🙂'),
)
/** Text that is more than white space, which most providers drop. */
const texts = fc
  .tuple(fc.array(piece, { maxLength: 6 }), fc.constantFrom('a', 'é', '語'))
  .map(([all, last]) => [...all, last])
const json = fc.dictionary(
  fc.string({ minLength: 1, maxLength: 8 }).filter((key) => key !== '__proto__'),
  fc.oneof(
    fc.integer(),
    fc.boolean(),
    fc.string({ unit: 'grapheme', maxLength: 8 }),
    fc.array(fc.integer(), { maxLength: 3 }),
  ),
  { maxKeys: 4 },
)

/** Splits a text into pieces of this size. */
function inPieces(text: string, size: number): string[] {
  const points = [...text]
  return Array.from({ length: Math.ceil(points.length / size) }, (_, at) =>
    points.slice(at * size, (at + 1) * size).join(''),
  )
}

const call = fc
  .record({
    id: fc.stringMatching(/^[a-zA-Z0-9_-]{3,12}$/),
    at: fc.nat(TOOLS.length - 1),
    args: json,
    size: fc.integer({ min: 1, max: 9 }),
  })
  .map(({ id, at, args, size }) => ({ id, name: TOOLS[at]?.name ?? '', pieces: inPieces(JSON.stringify(args), size) }))

const summary: fc.Arbitrary<ScriptedResponse> = fc
  .record({
    reasoning: fc.oneof(fc.constant<string[]>([]), texts),
    text: texts,
    isSilent: fc.boolean(),
    calls: fc.uniqueArray(call, { maxLength: 3, selector: ({ id }) => id }),
    isCut: fc.boolean(),
    input: fc.integer({ min: 100, max: 100_000 }),
    cached: fc.nat(100),
    output: fc.integer({ min: 100, max: 100_000 }),
    thought: fc.nat(100),
  })
  .map(({ reasoning, text, isSilent, calls, isCut, input, cached, output, thought }) => ({
    reasoning,
    text: isSilent && calls.length > 0 ? [] : text,
    calls,
    finish: calls.length > 0 ? 'tool_calls' : isCut ? 'length' : 'stop',
    stop: undefined,
    usage: { input, cached, output, reasoning: reasoning.length > 0 ? thought : 0 },
    faults: {},
  }))

/** What a client must have received. */
function expectSame({ text, reasoning = '', calls, finish, usage }: Reply): void {
  const { reasoning: thought, ...counts } = current.usage
  // A signature without a thought is a thought without text; the Messages API has no count of thought tokens.
  expect({ text, reasoning, finish, usage, calls: calls.map(({ name, args }) => ({ name, args })) }).toEqual({
    text: current.text.join(''),
    reasoning: current.reasoning.join(''),
    finish: current.finish as Reply['finish'],
    usage: { ...counts, ...(usage?.reasoning === undefined ? {} : { reasoning: thought }) },
    calls: current.calls.map(({ name, pieces }) => ({ name, args: JSON.parse(pieces.join('')) })),
  })
}

test.each(VENDORS)('keeps the response of a provider of the kind %s', async (name) => {
  const { origin, token } = gateway
  const clients = ROWS.map((row) => row.connect({ origin, token }))
  const chatInput = { ...chatInputOf(gateway.target(name).model), tools: TOOLS, is_thinking: true, max_tokens: 3000 }
  const property = fc.asyncProperty(
    summary,
    fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
    async (one, size) => {
      current = one
      bytes = size
      for (const client of clients) {
        expectSame(await client.stream(chatInput))
        expectSame(await client.whole(chatInput))
      }
    },
  )
  await fc.assert(property, { numRuns: 25, endOnFailure: true })
})
