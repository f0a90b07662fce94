import { describe, expect, test } from 'bun:test'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import { Compile } from 'typebox/compile'
import { ChatChunk as ChunkSchema, ChatCompletion as CompletionSchema } from '../../../spec/chat-completion.ts'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import type { ChatChunk, ChatCompletion, ChunkChoice, Delta } from '../../shared/canonical.ts'
import { createChunkEncoder, encodeWhole } from './response.ts'

const head = { id: 'chatcmpl-1', created: 5, model: 'p/m' }
const usage = usageFrom({ input: 3, output: 4 })
const isChunk = Compile(ChunkSchema)

const chunkOf = (...choices: ChunkChoice[]): ChatChunk => ({
  id: 'theirs',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'theirs',
  choices,
})
const choiceOf = (delta: Delta, index = 0): ChunkChoice => ({ index, delta })
const ends = (index = 0): ChunkChoice => ({ index, delta: {}, finish_reason: 'stop' })

/** The chunks of a stream. Fails on anything other than `data: {json}` and an empty line. */
function chunksOf(text: string): ChatChunk[] {
  expect(text.endsWith('\n\n')).toBe(true)
  return text
    .slice(0, -2)
    .split('\n\n')
    .filter((block) => block !== 'data: [DONE]')
    .map((block) => {
      expect(block).toMatch(/^data: \{[^\n]*\}$/)
      return JSON.parse(block.slice(6))
    })
}

describe('a chat-completions stream', () => {
  test('has no character in its events at which a client would end a line', () => {
    const writer = createChunkEncoder(head, { include_usage: false })
    const summary = 'a\u0085b\u2028\u2029c\u2028\n\v\f\u001c\r'
    const text = writer.encode([chunkOf(choiceOf({ content: summary }))])
    expect([...'\u0085\u2028\u2029\v\f\u001c\u001d\u001e\r'].filter((sign) => text.includes(sign))).toEqual([])
    expect(chunksOf(text)[1]?.choices[0]?.delta.content).toBe(summary)
    const failed = writer.fail(new GatewayError('invalid_value', 'at \u2028'))
    expect([failed.includes('\u2028'), JSON.parse(failed.slice(6)).error.message]).toEqual([false, 'at \u2028'])
  })

  test('sends the role of each choice first and alone, then the content, then the finish', () => {
    const writer = createChunkEncoder(head, { include_usage: false })
    const text = writer.encode([
      chunkOf(choiceOf({ role: 'assistant', content: 'a' }), choiceOf({ content: 'b' }, 1)),
      chunkOf(choiceOf({ role: 'assistant', content: 'c' })),
      chunkOf(ends(), ends(1)),
    ])
    const chunks = chunksOf(text)
    expect(
      chunks.map((chunk) => chunk.choices.map((choice) => [choice.index, choice.delta, choice.finish_reason])),
    ).toEqual([
      [[0, { role: 'assistant', content: '' }, null]],
      [[1, { role: 'assistant', content: '' }, null]],
      [
        [0, { content: 'a' }, null],
        [1, { content: 'b' }, null],
      ],
      [[0, { content: 'c' }, null]],
      [
        [0, {}, 'stop'],
        [1, {}, 'stop'],
      ],
    ])
    for (const chunk of chunks) {
      expect(isChunk.Check(chunk)).toBe(true)
      expect(chunk).toMatchObject({ ...head, object: 'chat.completion.chunk', system_fingerprint: null })
    }
  })

  test('does not repeat a role-only chunk of the provider, whatever empty members it has', () => {
    const writer = createChunkEncoder(head, { include_usage: false })
    const text = writer.encode([
      chunkOf(choiceOf({ role: 'assistant', content: '', refusal: null })),
      chunkOf(choiceOf({ content: 'x' })),
    ])
    expect(chunksOf(text).map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'x' },
    ])
  })

  test('sends the pieces of reasoning once and complete, so that the accumulator of openai keeps them', async () => {
    const writer = createChunkEncoder(head, { include_usage: false })
    const opaque = (value: string) => ({ opaque: { origin: 'messages-compat' as const, value } })
    const text =
      writer.encode([
        chunkOf(choiceOf({ reasoning_content: 'Let me ' })),
        chunkOf(choiceOf({ reasoning_content: 'see.' })),
      ]) +
      writer.encode([chunkOf(choiceOf({ reasoning_details: [opaque('S1')] }))]) +
      writer.encode([
        chunkOf(choiceOf({ reasoning_details: [opaque('S2')] })),
        chunkOf(choiceOf({ content: 'Yes.' })),
      ]) +
      writer.encode([chunkOf(ends())])
    const details = [{ text: 'Let me see.', ...opaque('S1') }, opaque('S2')]
    const deltas = chunksOf(text).flatMap(({ choices }) => choices.map(({ delta }) => delta))
    expect(deltas.flatMap(({ reasoning_details = [] }): unknown[] => reasoning_details)).toEqual(details)
    const lines = chunksOf(text).map((chunk) => `${JSON.stringify(chunk)}\n`)
    const { message } = (
      await ChatCompletionStream.fromReadableStream(new Blob([lines.join('')]).stream()).finalChatCompletion()
    ).choices[0] as { message: unknown }
    expect(message).toMatchObject({ content: 'Yes.', reasoning_details: details })
  })

  test('keeps the members that the provider adds', () => {
    const writer = createChunkEncoder(head, { include_usage: false })
    const text = writer.encode([{ ...chunkOf(choiceOf({ content: 'x' })), provider_note: 1 } as ChatChunk])
    expect(chunksOf(text)[1]).toMatchObject({ provider_note: 1 })
  })

  test('sends usage only on request: null in each chunk, and at the end a chunk without choices', () => {
    const clientRequest = createChunkEncoder(head, { include_usage: true })
    const on = chunksOf(
      clientRequest.encode([
        { ...chunkOf(choiceOf({ content: 'x' })), usage },
        { ...chunkOf(), usage },
      ]) + clientRequest.end(usage),
    )
    expect(on.map((chunk) => chunk.usage)).toEqual([null, null, usage])
    expect(on.at(-1)).toEqual({
      ...head,
      object: 'chat.completion.chunk',
      system_fingerprint: null,
      choices: [],
      usage,
    })

    const unasked = createChunkEncoder(head, { include_usage: false })
    const off =
      unasked.encode([
        { ...chunkOf(choiceOf({ content: 'x' })), usage },
        { ...chunkOf(), usage },
      ]) + unasked.end(undefined)
    expect(off).not.toContain('usage')
    expect(off.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('ends with one error event and without [DONE] on a failure', () => {
    const text = createChunkEncoder(head, { include_usage: true }).fail(
      new GatewayError('upstream_cut', 'It broke off.'),
    )
    expect(text).toBe(
      'data: {"error":{"message":"It broke off.","type":"upstream_error","param":null,"code":"upstream_cut"}}\n\n',
    )
  })
})

describe('a whole chat completion', () => {
  const call = { id: 'call_1', type: 'function' as const, function: { name: 'f', arguments: '{}' } }
  const answer = (): ChatCompletion => ({
    id: 'theirs',
    object: 'chat.completion',
    created: 1,
    model: 'theirs',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'hi', reasoning_content: 'hm' }, finish_reason: 'stop' },
      { index: 1, message: { role: 'assistant', content: null, tool_calls: [call] }, finish_reason: 'tool_calls' },
    ],
  })

  test('has message and a mirrored delta, and matches the schema', () => {
    const whole = encodeWhole(answer(), head, { usage, delta_mirror: true })
    expect(Compile(CompletionSchema).Check(whole)).toBe(true)
    expect(whole).toMatchObject({ ...head, object: 'chat.completion', system_fingerprint: null, usage })
    expect(whole.choices[0]).toEqual({
      index: 0,
      message: { role: 'assistant', content: 'hi', refusal: null, reasoning_content: 'hm' },
      delta: { role: 'assistant', content: 'hi', reasoning_content: 'hm' },
      finish_reason: 'stop',
      logprobs: null,
    })
    expect(whole.choices[1]?.delta).toEqual({ role: 'assistant', tool_calls: [{ index: 0, ...call }] })
  })

  test('has no delta with the mirror turned off', () => {
    const whole = encodeWhole(answer(), head, { usage, delta_mirror: false })
    expect(whole.choices.map((choice) => 'delta' in choice)).toEqual([false, false])
  })
})
