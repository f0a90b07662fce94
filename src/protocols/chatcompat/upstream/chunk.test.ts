import { describe, expect, test } from 'bun:test'
import type { ChatChunk } from '../../canonical.ts'
import { createChunkNormaliser } from './chunk.ts'

const FALLBACK = { id: 'ours', model: 'asked', created: 1 }
const HEAD = { id: 'theirs', object: 'chat.completion.chunk', created: 2, model: 'm' }

type Raw = Record<string, unknown>
const withDelta = (delta: unknown, finish_reason: unknown = null, index: unknown = 0): Raw => ({
  ...HEAD,
  choices: [{ index, delta, finish_reason }],
})

function feed(...payloads: Raw[]) {
  const normaliser = createChunkNormaliser(FALLBACK)
  const chunks = payloads.map((payload) => normaliser.take(payload))
  return { chunks, normaliser, deltas: chunks.map((chunk) => chunk?.choices[0]?.delta) }
}

const toolDelta = (...calls: unknown[]) => withDelta({ tool_calls: calls })
const toolCallsIn = (chunks: (ChatChunk | undefined)[]) =>
  chunks.map((chunk) => chunk?.choices[0]?.delta.tool_calls ?? [])

describe('chunks', () => {
  test('a piece of text after the first passes as the very same object', () => {
    const plain = withDelta({ content: 'b' })
    const { chunks } = feed(withDelta({ content: 'a' }), plain)
    expect(chunks[1]).toBe(plain as unknown as ChatChunk)
  })

  test('the first chunk of each choice says the role, and only a role that may be', () => {
    const { deltas } = feed(
      withDelta({ content: 'a' }),
      withDelta({ role: 'model', content: 'b' }),
      withDelta({}, null, 1),
    )
    expect(deltas).toEqual([{ role: 'assistant', content: 'a' }, { content: 'b' }, { role: 'assistant' }])
  })

  test('a missing or blank object, index, id, model or time is filled in, with what was said before if it was', () => {
    const { chunks } = feed(
      { choices: [{ delta: { content: 'a' } }] },
      { ...withDelta({ content: 'b' }), object: '' },
      { id: '', model: '', created: null, object: null, choices: [{ index: null, delta: { content: 'c' } }] },
    )
    expect(chunks[0]).toMatchObject({ ...FALLBACK, object: 'chat.completion.chunk', choices: [{ index: 0 }] })
    expect(chunks[1]).toMatchObject(HEAD)
    expect(chunks[2]).toMatchObject({ ...HEAD, choices: [{ index: 0, delta: { content: 'c' } }] })
  })

  test('an absent or null delta is an empty one', () => {
    expect(
      feed(withDelta({ content: '' }), withDelta(null), { ...HEAD, choices: [{ index: 0 }] }).deltas.slice(1),
    ).toEqual([{}, {}])
  })

  test('reasoning has one name; both names at once are not said twice', () => {
    const { deltas } = feed(
      withDelta({ content: '' }),
      withDelta({ reasoning: 'a' }),
      withDelta({ reasoning: 'b', reasoning_content: 'b' }),
      withDelta({ reasoning: null, content: 'c' }),
    )
    expect(deltas.slice(1)).toEqual([{ reasoning_content: 'a' }, { reasoning_content: 'b' }, { content: 'c' }])
  })

  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['eos', 'stop'],
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['STOP', 'stop'],
    ['max_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['tool_use', 'tool_calls'],
    ['function_call', 'tool_calls'],
    ['safety', 'content_filter'],
    ['SAFETY', 'content_filter'],
    ['some new word', 'stop'],
    ['', null],
    ['null', null],
    [undefined, null],
    [7, null],
  ])('the finish word %p becomes %p', (word, expected) => {
    const { chunks } = feed(withDelta({ content: 'a' }), withDelta({}, word))
    expect(chunks[1]?.choices[0]?.finish_reason ?? null).toBe(expected as 'stop')
  })

  test('each choice ends once: a repeated finish and empty deltas after it are left out', () => {
    const { chunks, normaliser } = feed(
      withDelta({ content: 'a' }),
      withDelta({}, 'stop'),
      withDelta({}, 'stop'),
      withDelta({ role: 'assistant', content: '' }),
      { ...withDelta({ content: '' }, 'stop'), usage: { prompt_tokens: 1, completion_tokens: 1 } },
    )
    expect(chunks.slice(2, 4)).toEqual([undefined, undefined])
    expect(chunks[4]).toMatchObject({ choices: [], usage: { total_tokens: 2 } })
    expect(normaliser.isFinished()).toBe(true)
    expect(normaliser.missingFinish()).toBeUndefined()
  })

  test('text after the finish is still said, but does not end its choice again', () => {
    const { chunks } = feed(withDelta({ content: 'a' }, 'stop'), withDelta({ content: 'b' }, 'stop'))
    expect(chunks[1]?.choices[0]).toMatchObject({ delta: { content: 'b' }, finish_reason: null })
  })

  test('usage beside a piece of text is read, wherever the vendor puts it', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    const { chunks } = feed(
      withDelta({ content: 'a' }),
      { ...withDelta({ content: 'b' }), usage },
      { ...withDelta({ content: 'c' }), x_groq: { usage } },
    )
    expect(chunks.map((chunk) => chunk?.usage?.total_tokens)).toEqual([undefined, 2, 2])
  })

  test('several choices keep apart, and only the open ones get a finish of ours', () => {
    const { normaliser } = feed(
      withDelta({ content: 'a' }),
      withDelta({ content: 'b' }, null, 1),
      withDelta({}, 'stop', 1),
    )
    expect(normaliser.isFinished()).toBe(false)
    expect(normaliser.missingFinish()).toEqual({
      ...HEAD,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    })
    expect(normaliser.isFinished()).toBe(true)
  })

  test('a chunk without choices and usage says nothing', () => {
    const { chunks, normaliser } = feed({ ...HEAD, choices: [] }, { ...HEAD }, { ...HEAD, choices: [null, 'x'] })
    expect(chunks).toEqual([undefined, undefined, undefined])
    expect(normaliser.hasStarted()).toBe(false)
    expect(normaliser.isFinished()).toBe(false)
  })

  test('usage of all zeros, as some runtimes send with each chunk, is none', () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    expect(feed({ ...withDelta({ content: 'a' }), usage }).chunks[0]?.usage).toBeNull()
  })

  test('unknown members of a chunk, a choice and a delta are kept', () => {
    const { chunks } = feed({
      ...HEAD,
      provider: 'x',
      choices: [{ index: 0, delta: { content: 'a', annotations: [] }, finish_reason: null, logprobs: { content: [] } }],
    })
    expect(chunks[0]).toMatchObject({
      provider: 'x',
      choices: [{ logprobs: { content: [] }, delta: { annotations: [] } }],
    })
  })
})

describe('tool calls', () => {
  test('id, type and name are said once, whatever the vendor repeats or blanks', () => {
    const { chunks } = feed(
      toolDelta({ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }),
      toolDelta({ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a"' } }),
      toolDelta({ index: 0, id: '', type: null, function: { name: '', arguments: ':1' } }),
      toolDelta({ index: 0, id: null, function: { name: null, arguments: '}' } }),
      toolDelta({ index: 0, id: 'null', function: { arguments: null } }),
    )
    expect(toolCallsIn(chunks)).toEqual([
      [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
      [{ index: 0, function: { arguments: '{"a"' } }],
      [{ index: 0, function: { arguments: ':1' } }],
      [{ index: 0, function: { arguments: '}' } }],
      [],
    ])
  })

  test('an index is filled in and an id is made where there is none', () => {
    const { chunks } = feed(
      toolDelta({ function: { name: 'f', arguments: '{' } }),
      toolDelta({ function: { arguments: '}' } }),
      toolDelta({ function: { name: 'g', arguments: '{}' } }),
    )
    const converted = { id: expect.stringMatching(/^call_\w{24}$/), type: 'function' }
    expect(toolCallsIn(chunks)).toMatchObject([
      [{ index: 0, ...converted, function: { name: 'f', arguments: '{' } }],
      [{ index: 0, function: { arguments: '}' } }],
      [{ index: 1, ...converted, function: { name: 'g', arguments: '{}' } }],
    ])
  })

  test('parallel calls that all carry the index 0 are told apart by id and name', () => {
    const { chunks } = feed(
      toolDelta(
        { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } },
        { index: 0, id: 'b', function: { name: 'f', arguments: '{}' } },
      ),
    )
    expect(toolCallsIn(chunks)[0]?.map(({ index, id }) => [index, id])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ])
  })

  test('interleaved calls get their own arguments', () => {
    const { chunks } = feed(
      toolDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '' } }),
      toolDelta({ index: 1, id: 'b', function: { name: 'g', arguments: '' } }),
      toolDelta({ index: 0, function: { arguments: '1' } }),
      toolDelta({ index: 1, function: { arguments: '2' } }),
    )
    expect(toolCallsIn(chunks).slice(2)).toEqual([
      [{ index: 0, function: { arguments: '1' } }],
      [{ index: 1, function: { arguments: '2' } }],
    ])
  })

  test('a call waits for its name, and then has the arguments that came before', () => {
    const { chunks } = feed(
      toolDelta({ index: 0, id: 'a', function: { arguments: '{' } }),
      toolDelta({ index: 0, function: { name: 'f', arguments: '}' } }),
    )
    expect(toolCallsIn(chunks)).toEqual([
      [],
      [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    ])
  })

  test('a call whose name never comes is no call, so the end is no tool call', () => {
    const { chunks } = feed(toolDelta({ index: 0, id: 'a', function: { arguments: '{}' } }), withDelta({}, 'stop'))
    expect(chunks[1]?.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' })
  })

  test('arguments sent as an object become JSON text', () => {
    const { chunks } = feed(toolDelta({ index: 0, function: { name: 'f', arguments: { city: 'Köln' } } }))
    expect(toolCallsIn(chunks)[0]?.[0]?.function.arguments).toBe('{"city":"Köln"}')
  })

  test('the older function_call becomes a tool call', () => {
    const { chunks } = feed(
      withDelta({ role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } }),
      withDelta({ function_call: { arguments: '{}' } }),
      withDelta({}, 'function_call'),
    )
    expect(toolCallsIn(chunks).flat()).toMatchObject([
      { index: 0, type: 'function', function: { name: 'f', arguments: '' } },
      { index: 0, function: { arguments: '{}' } },
    ])
    expect(chunks[2]?.choices[0]?.finish_reason).toBe('tool_calls')
    expect(JSON.stringify(chunks)).not.toContain('"function_call"')
  })

  test('a finish of `stop` after tool calls is `tool_calls`; other finishes stand', () => {
    const call = toolDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } })
    expect(feed(call, withDelta({}, 'stop')).chunks[1]?.choices[0]?.finish_reason).toBe('tool_calls')
    expect(feed(structuredClone(call), withDelta({}, 'length')).chunks[1]?.choices[0]?.finish_reason).toBe('length')
    expect(feed(structuredClone(call)).normaliser.missingFinish()?.choices[0]?.finish_reason).toBe('tool_calls')
  })

  test('an empty or null list of tool calls is no tool call', () => {
    const { chunks } = feed(
      withDelta({ content: 'a', tool_calls: [] }),
      withDelta({ tool_calls: null }),
      withDelta({}, 'stop'),
    )
    expect(chunks.map((chunk) => chunk?.choices[0]?.delta)).toEqual([{ role: 'assistant', content: 'a' }, {}, {}])
    expect(chunks[2]?.choices[0]?.finish_reason).toBe('stop')
  })
})
