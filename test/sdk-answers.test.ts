/** Unusual answers with members that are empty or null, in every major of every client of the matrix. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openPort, type Port } from './kit/served.ts'
import { chunk, completion, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'
import { chatInputOf, TOOLS } from './matrix/inputs.ts'
import { ROWS } from './matrix/rows.ts'

let vendor: Vendor
let port: Port
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  vendor = startVendor()
  port = await openPort({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
})

type Message = {
  role: 'assistant'
  content: string | null
  refusal?: string
  reasoning_content?: string
  annotations?: object[]
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
}
const message = (more: Partial<Message>): Message => ({ role: 'assistant', content: null, ...more })
const citation = (title: string) => ({
  type: 'url_citation',
  url_citation: { url: 'https://a.example/', title, start_index: 0, end_index: 2 },
})
const call = (id: string, text: string) => ({
  id,
  type: 'function' as const,
  function: { name: 'get_weather', arguments: text },
})

const ANSWERS: Record<string, { message: Message; finish: string; text?: string; calls?: number }> = {
  'a text with citations, one without a title': {
    message: message({ content: 'It is so.', annotations: [citation('A'), citation('')] }),
    finish: 'stop',
    text: 'It is so.',
  },
  'a text without content': { message: message({ content: '' }), finish: 'stop', text: '' },
  'a refusal': { message: message({ refusal: 'I will not.' }), finish: 'stop' },
  'a filtered answer': { message: message({ content: '' }), finish: 'content_filter', text: '' },
  'reasoning, text and calls, one without arguments': {
    message: message({
      content: 'One moment.',
      reasoning_content: 'Hm.',
      tool_calls: [call('call_1', '{}'), call('call_2', '{"city":null}')],
    }),
    finish: 'tool_calls',
    text: 'One moment.',
    calls: 2,
  },
}

const choices = (answer: Message, finish_reason: string) => [
  { index: 0, message: answer, logprobs: null, finish_reason },
]

/** The answer in pieces. The last ones are empty, as vendors send them. */
function piecesOf({ message: answer, finish }: (typeof ANSWERS)[string]): object[] {
  const { content, refusal, reasoning_content, annotations, tool_calls = [] } = answer
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(reasoning_content ? [chunk({ reasoning_content })] : []),
    ...(content ? [chunk({ content })] : []),
    ...(refusal ? [chunk({ refusal })] : []),
    ...(annotations ? [chunk({ annotations })] : []),
    ...tool_calls.map((one, index) => chunk({ tool_calls: [{ index, ...one }] })),
    chunk({ content: '' }),
    chunk({}, finish),
    usageChunk(),
  ]
}

describe.each(ROWS.map((row) => [row.name, row] as const))('%s', (_, row) => {
  const client = () => row.connect({ origin: port.url.replace(/\/v1$/, ''), token: port.token })
  const input = { ...chatInputOf('v/m'), tools: TOOLS }

  const answers = Object.entries(ANSWERS).filter(
    ([, { message: sent }]) => !(sent.refusal && row.unsupported.includes('refusal')),
  )

  test.each(answers)('accepts %s, whole and streamed', async (_name, answer) => {
    const { text, calls = 0 } = answer
    vendor.answer(whole(completion('', { choices: choices(answer.message, answer.finish) })))
    const complete = await client().whole(input)
    vendor.answer(stream(piecesOf(answer)))
    const streamed = await client().stream(input)
    for (const reply of [complete, streamed]) {
      if (text !== undefined) expect(reply.text).toBe(text)
      expect(reply.calls.length).toBe(calls)
    }
  })
})
