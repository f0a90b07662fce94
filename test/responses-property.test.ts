/** For deltas in any order, the events build the response that the client library puts together. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import { eventsAfter, storedEventsOf } from '../src/families/chat/response-events.ts'
import { checkedRequest, translatedRequest } from '../src/protocols/responses/client/request.ts'
import { createResponsesEncoder } from '../src/protocols/responses/client/response.ts'
import { clientTools } from '../src/protocols/responses/client/tools.ts'
import type { ChatChunk, Delta, Opaque } from '../src/protocols/shared/canonical.ts'
import type { FinishReason } from '../src/spec/chat-completion.ts'
import { GatewayError } from '../src/spec/error.ts'
import { usageFrom } from '../src/spec/usage.ts'
import { manualClock } from './kit/clock.ts'

const texts = fc.string({
  minLength: 1,
  maxLength: 6,
  unit: fc.constantFrom('a', ' ', '"', '\n', '\u2028', 'ü', '{', '}'),
})
const opaque: fc.Arbitrary<Opaque> = fc.record({
  origin: fc.constantFrom('messages-compat' as const, 'chatcompat-response' as const),
  value: fc.base64String({ minLength: 4, maxLength: 8 }),
})
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const call = fc
  .record({
    index: fc.nat({ max: 2 }),
    text: fc.constantFrom('', '{', '"a":1', '}', '{"input":"x"}'),
    opaque: maybe(opaque),
  })
  .map(({ index, text, opaque }) => ({
    index,
    id: `call_${index}`,
    type: 'function' as const,
    // The second has a namespace, and the last is a custom tool.
    function: { name: ['tool_0', 'crm__tool_1', 'tool_2'][index] ?? '', arguments: text },
    ...(opaque ? { opaque } : {}),
  }))
const delta: fc.Arbitrary<Delta> = fc.oneof(
  texts.map((content) => ({ content })),
  texts.map((refusal) => ({ refusal })),
  texts.map((reasoning_content) => ({ reasoning_content })),
  fc.record({ text: maybe(texts), opaque: maybe(opaque) }).map(({ text, opaque }) => ({
    reasoning_details: [{ ...(text === undefined ? {} : { text }), ...(opaque ? { opaque } : {}) }],
  })),
  call.map((one) => ({ tool_calls: [one] })),
  fc.tuple(fc.nat(9), fc.nat(9)).map(([start_index, end_index]) => ({
    annotations: [
      { type: 'url_citation' as const, url_citation: { start_index, end_index, url: 'https://a.example', title: 'A' } },
    ],
  })),
  maybe(opaque).map((signed) => ({
    images: [
      {
        type: 'image_url' as const,
        image_url: { url: 'data:image/png;base64,AA==' },
        ...(signed ? { opaque: signed } : {}),
      },
    ],
  })),
)
const spoken = fc.record({
  deltas: fc.array(delta, { maxLength: 12 }),
  finish: fc.constantFrom<FinishReason>('stop', 'length', 'tool_calls', 'content_filter'),
  tells: fc.boolean(),
})

function streamOf({ deltas, finish, tells }: { deltas: Delta[]; finish: FinishReason; tells: boolean }): string {
  const requested = {
    model: 'a/b',
    tools: [
      { type: 'custom', name: 'tool_2' },
      { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'tool_1' }] },
    ],
    include: tells ? ['reasoning.encrypted_content'] : [],
  }
  const head = { id: 'resp_abc', created: 1, model: 'a/b' }
  const request = { model: 'a/b', messages: [] }
  const { names } = clientTools(requested)
  const writer = createResponsesEncoder({
    head,
    clientRequest: requested,
    request,
    names,
    store: async () => {},
    clock: manualClock(),
  })
  const chunkOf = (part: Delta, finish_reason: FinishReason | null = null): ChatChunk => ({
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: part, finish_reason }],
  })
  const summary = deltas.map((part) => writer.encode([chunkOf(part)])).join('')
  return summary + writer.encode([chunkOf({}, finish)]) + writer.end(usageFrom({ input: 1, output: 1 }))
}
const eventsOf = (text: string) => [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data)

test('the openai helper builds the same response as the last event', async () => {
  await fc.assert(
    fc.asyncProperty(spoken, async (one) => {
      const events = eventsOf(streamOf(one))
      const encoder = new TextEncoder()
      const lines = new ReadableStream({
        start(controller) {
          for (const event of events) controller.enqueue(encoder.encode(`${event}\n`))
          controller.close()
        },
      })
      const helper = ResponseStream.fromReadableStream(lines)
      const snapshots: unknown[] = []
      for await (const event of helper) snapshots.push(event)
      const { output } = await helper.finalResponse()
      const last = JSON.parse(events.at(-1) ?? '') as { response: { output: Record<string, unknown>[] } }
      const done = snapshots.filter((event) => (event as { type: string }).type === 'response.output_item.done') as {
        output_index: number
        item: object
      }[]
      const sorted = done.toSorted((left, right) => left.output_index - right.output_index)
      expect(sorted.map(({ item }) => item as unknown)).toEqual(last.response.output)
      expect(output.map(({ id }) => id)).toEqual(last.response.output.map(({ id }) => id as string))
    }),
    { numRuns: 300 },
  )
})

test('a stream resumed at any number has no gap and no duplicate', () => {
  fc.assert(
    fc.property(spoken, fc.nat(60), (one, after) => {
      const output = storedEventsOf(streamOf(one))
      if (!output) throw new Error('Nothing was sent.')
      const numbers = eventsOf(eventsAfter(output, after)).map((event) => JSON.parse(event).sequence_number as number)
      const all = Array.from({ length: output.last_number + 1 }, (_none, number) => number)
      expect(numbers).toEqual(all.filter((number) => number > after))
    }),
  )
})

describe('generated Responses requests', () => {
  const odd = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.boolean(), fc.constant({}), fc.constant([]))
  const member = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof({ weight: 6, arbitrary }, { weight: 1, arbitrary: odd })
  const part = fc.record(
    {
      type: member(fc.constantFrom('input_text', 'output_text', 'input_image', 'input_file', 'refusal', 'input_audio')),
      text: member(texts),
      image_url: member(fc.constant('https://a.example/b.png')),
      file_url: member(texts),
      refusal: member(texts),
    },
    { requiredKeys: [] },
  )
  const ownTool = fc.record({ type: fc.constantFrom('function', 'custom', 'web_search', 'mcp'), name: member(texts) })
  const tools = fc.array(
    fc.oneof(
      ownTool,
      fc.record(
        { type: fc.constantFrom('namespace', 'tool_search'), name: texts, tools: member(fc.array(ownTool)) },
        { requiredKeys: ['type'] },
      ),
    ),
    { maxLength: 2 },
  )
  const item = fc.record(
    {
      type: member(
        fc.constantFrom(
          'message',
          'function_call',
          'function_call_output',
          'custom_tool_call',
          'custom_tool_call_output',
          'reasoning',
          'image_generation_call',
          'item_reference',
          'web_search_call',
          'additional_tools',
          'tool_search_call',
          'tool_search_output',
        ),
      ),
      id: member(texts),
      role: member(fc.constantFrom('user', 'assistant', 'system', 'developer')),
      content: member(fc.oneof(texts, fc.array(part, { maxLength: 2 }))),
      call_id: member(texts),
      name: member(texts),
      namespace: member(texts),
      tools: member(tools),
      arguments: member(texts),
      input: member(texts),
      output: member(texts),
      summary: member(fc.constant([{ type: 'summary_text', text: 'x' }])),
      encrypted_content: member(fc.constantFrom('ENC', 'gatehouse.plain', 'gatehouse.x')),
      result: member(texts),
    },
    { requiredKeys: ['type'] },
  )
  const body = fc.record(
    {
      model: member(fc.constant('a/b')),
      input: member(fc.oneof(texts, fc.array(item, { maxLength: 4 }))),
      instructions: member(texts),
      tools: member(tools),
      tool_choice: member(fc.constantFrom('auto', 'required')),
      text: member(fc.constant({ format: { type: 'json_schema', name: 'n', schema: {} } })),
      reasoning: member(fc.record({ effort: member(fc.constantFrom('low', 'high')) })),
    },
    { requiredKeys: ['model', 'input'] },
  )

  test('are decoded, or refused with a client error and a place in the body', () => {
    let accepted = 0
    fc.assert(
      fc.property(body, (sent) => {
        try {
          const { messages } = translatedRequest(checkedRequest(sent), { items: [], ids: [] }).request
          expect(messages.length).toBeGreaterThan(0)
          accepted++
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error
          expect([error.status, typeof error.detail.param]).toEqual([400, 'string'])
          const [root = ''] = (error.detail.param ?? '').split(/[.[]/)
          expect([...Object.keys(sent), 'input']).toContain(root)
        }
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })
})
