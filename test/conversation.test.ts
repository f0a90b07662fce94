/** A random conversation of a client of any dialect with any kind of provider arrives at the provider without loss. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anthropic1 } from './matrix/clients/anthropic-1.ts'
import { genai3 } from './matrix/clients/genai-3.ts'
import { openai7 } from './matrix/clients/openai-7.ts'
import { openai7Responses } from './matrix/clients/openai-7-responses.ts'
import { type MatrixGateway, openMatrixGateway } from './matrix/gateway.ts'
import { PIXEL, TOOLS } from './matrix/inputs.ts'
import type { Line, ReceivedRequest, ScriptedResponse } from './matrix/model-script.ts'
import { TARGET_NAMES } from './matrix/targets.ts'
import type { ChatInput, Client, Row, Turn } from './matrix/types.ts'

/** One client of each dialect. */
const ROWS: Row[] = [openai7, openai7Responses, anthropic1, genai3]
const VENDORS = TARGET_NAMES.filter((name) => name !== 'sandbox')
const THOUGHT = ['I ', 'see.']

let answer: ScriptedResponse
let received: ReceivedRequest | undefined
let gateway: MatrixGateway
beforeAll(async () => {
  gateway = await openMatrixGateway({
    respond(all) {
      received = all
      return answer
    },
  })
})
afterAll(() => gateway.close())

/** Text without white space at its ends, which providers trim. */
const texts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).map((text) => `a${text}é`)
const args = fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.oneof(fc.integer(), fc.boolean(), texts), {
  maxKeys: 3,
})
const call = fc.record({ name: fc.constantFrom(...TOOLS.map(({ name }) => name)), args, result: texts })

/** A question and its response, after any number of tool calls. */
const exchange = fc.record({
  question: texts,
  isShown: fc.boolean(),
  rounds: fc.array(
    fc.record({ text: fc.oneof(fc.constant(''), texts), calls: fc.array(call, { minLength: 1, maxLength: 3 }) }),
    {
      maxLength: 2,
    },
  ),
  answer: texts,
})
type Exchange = typeof exchange extends fc.Arbitrary<infer T> ? T : never

/** The same response from the provider, with signed thoughts. */
function scriptedReply(text: string, calls: { name: string; args: unknown }[], at: number): ScriptedResponse {
  return {
    reasoning: THOUGHT,
    text: text === '' ? [] : [text],
    calls: calls.map(({ name, args: given }, index) => ({
      id: `call_${at}_${index}`,
      name,
      pieces: [JSON.stringify(given)],
    })),
    finish: calls.length > 0 ? 'tool_calls' : 'stop',
    stop: undefined,
    usage: { input: 9, cached: 0, output: 9, reasoning: 2 },
    faults: {},
  }
}

/** Runs the conversation turn by turn. Each time the provider must receive the whole history. */
async function hold(client: Client, model: string, { system, exchanges }: { system: string; exchanges: Exchange[] }) {
  const turns: Turn[] = []
  const lines: Line[] = []
  const chatInput: ChatInput = { model, system, turns, tools: TOOLS, is_thinking: true, max_tokens: 3000 }
  const exchange = async (text: string, calls: { name: string; args: unknown }[]) => {
    answer = scriptedReply(text, calls, turns.length)
    const reply = await (turns.length % 2 === 0 ? client.stream(chatInput) : client.whole(chatInput))
    expect([received?.system, received?.history]).toEqual([system, lines])
    turns.push({ role: 'assistant', reply })
    lines.push({ role: 'assistant', text, calls })
    return reply
  }
  for (const { question, isShown, rounds, answer: last } of exchanges) {
    turns.push({ role: 'user', text: question, ...(isShown ? { picture: PIXEL } : {}) })
    lines.push({ role: 'user', text: question, pictures: isShown ? [PIXEL.data] : [] })
    for (const { text, calls } of rounds) {
      const reply = await exchange(
        text,
        calls.map(({ name, args: given }) => ({ name, args: given })),
      )
      const results = calls.map(({ name, result }, index) => ({ id: reply.calls[index]?.id ?? '', name, text: result }))
      turns.push({ role: 'results', results })
      lines.push({ role: 'results', results: results.map(({ name, text: summary }) => ({ name, text: summary })) })
    }
    await exchange(last, [])
  }
}

const conversation = fc.record({ system: texts, exchanges: fc.array(exchange, { minLength: 1, maxLength: 3 }) })

test.each(VENDORS)('keeps every turn with a provider of the kind %s', async (name) => {
  const { origin, token } = gateway
  const clients = ROWS.map((row) => row.connect({ origin, token }))
  const { model } = gateway.target(name)
  const property = fc.asyncProperty(conversation, async (one) => {
    for (const client of clients) await hold(client, model, one)
  })
  await fc.assert(property, { numRuns: 12, endOnFailure: true })
})
