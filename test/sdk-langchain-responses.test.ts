/** The `@langchain/openai` package with the Responses API. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { GENERAL, type Served, serve } from './kit/served.ts'
import { chunk, stream, usageChunk } from './kit/vendor.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
})
beforeEach(() => {
  served.vendor.requests.length = 0
})
afterAll(() => served.close())

const model = (id: string) =>
  new ChatOpenAI({
    model: id,
    apiKey: served.token,
    useResponsesApi: true,
    maxRetries: 0,
    configuration: { baseURL: served.url },
  })
const weather = tool(async ({ city }: { city: string }) => `Sun in ${city}`, {
  name: 'get_weather',
  description: 'The weather in a city',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
})

test.each(GENERAL)('%s responds, whole and streamed', async (id) => {
  const answer = await model(id).invoke('What is Gatehouse?')
  expect(answer.text.length).toBeGreaterThan(20)
  expect(answer.usage_metadata as unknown).toMatchObject({ total_tokens: expect.any(Number) })
  let text = ''
  for await (const piece of await model(id).stream('What is Gatehouse?')) text += piece.text
  expect(text.length).toBeGreaterThan(20)
})

test('a tool call and its result reach the vendor', async () => {
  const call = {
    index: 0,
    id: 'call_a',
    type: 'function',
    function: { name: 'get_weather', arguments: '{"city":"Bern"}' },
  }
  served.vendor.answer(
    stream([chunk({ role: 'assistant', tool_calls: [call] }), chunk({}, 'tool_calls'), usageChunk()]),
  )
  const able = model('v/m').bindTools([weather])
  const question = new HumanMessage('Weather?')
  let first: Awaited<ReturnType<typeof able.invoke>> | undefined
  for await (const piece of await able.stream([question])) first = first ? first.concat(piece) : piece
  expect(first?.tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Bern' }, id: 'call_a' }])
  if (!first) throw new Error('the stream was empty')
  const result = new ToolMessage({ tool_call_id: 'call_a', content: 'Sun in Bern' })
  expect((await able.invoke([question, first, result])).text).toBe('Hello')
  expect(served.vendor.requests.at(-1)?.json().messages).toMatchObject([
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', tool_calls: [{ id: 'call_a' }] },
    { role: 'tool', tool_call_id: 'call_a', content: 'Sun in Bern' },
  ])
})
