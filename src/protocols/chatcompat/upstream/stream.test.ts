import { describe, expect, test } from 'bun:test'
import type { ChatChunk } from '../../shared/canonical.ts'
import { normaliseWhole } from './answer.ts'
import { ChunkNormaliser } from './stream.ts'

const FALLBACK = { id: 'ours', model: 'asked', created: 1 }
const HEAD = { id: 'theirs', object: 'chat.completion.chunk', created: 2, model: 'm' }

type Raw = Record<string, unknown>
const withDelta = (delta: unknown, finish_reason: unknown = null, index: unknown = 0): Raw => ({
  ...HEAD,
  choices: [{ index, delta, finish_reason }],
})

function feed(...payloads: Raw[]) {
  const normaliser = new ChunkNormaliser(FALLBACK)
  const chunks = payloads.map((payload) => normaliser.take(payload))
  return { chunks, normaliser, deltas: chunks.map((chunk) => chunk?.choices[0]?.delta) }
}

const toolDelta = (...calls: unknown[]) => withDelta({ tool_calls: calls })
const toolCallsIn = (chunks: (ChatChunk | undefined)[]) =>
  chunks.map((chunk) => chunk?.choices[0]?.delta.tool_calls ?? [])

describe('the chunk normaliser', () => {
  test('returns the same object for a piece of text after the first', () => {
    const plain = withDelta({ content: 'b' })
    const { chunks } = feed(withDelta({ content: 'a' }), plain)
    expect(chunks[1]).toBe(plain as unknown as ChatChunk)
  })

  test('passes over a choice that is not an object', () => {
    const { chunks } = feed(withDelta({ content: 'a' }), { ...HEAD, choices: [null] }, withDelta({ content: 'b' }))
    expect(chunks[1]?.choices ?? []).toEqual([])
    expect(chunks[2]?.choices[0]?.delta).toEqual({ content: 'b' })
  })

  test('leaves out annotations that do not cite a URL', () => {
    const cited = {
      type: 'url_citation' as const,
      url_citation: { url: 'https://a.example', title: 'A', start_index: 0, end_index: 1 },
    }
    const annotations = [null, 'x', { type: 'url_citation' }, { type: 'url_citation', url_citation: {} }, cited]
    const { deltas } = feed(withDelta({ content: 'a', annotations }))
    expect(deltas[0]?.annotations).toEqual([cited])
    const whole = normaliseWhole({ ...HEAD, choices: [{ index: 0, message: { content: 'a', annotations } }] }, FALLBACK)
    expect(whole?.choices[0]?.message.annotations).toEqual([cited])
  })

  test('sends the role in the first chunk of each choice, and only a valid role', () => {
    const { deltas } = feed(
      withDelta({ content: 'a' }),
      withDelta({ role: 'model', content: 'b' }),
      withDelta({}, null, 1),
    )
    expect(deltas).toEqual([{ role: 'assistant', content: 'a' }, { content: 'b' }, { role: 'assistant' }])
  })

  test('replaces a missing or blank object, index, id, model or time, by the value of an earlier chunk if there is one', () => {
    const { chunks } = feed(
      { choices: [{ delta: { content: 'a' } }] },
      { ...withDelta({ content: 'b' }), object: '' },
      { id: '', model: '', created: null, object: null, choices: [{ index: null, delta: { content: 'c' } }] },
    )
    expect(chunks[0]).toMatchObject({ ...FALLBACK, object: 'chat.completion.chunk', choices: [{ index: 0 }] })
    expect(chunks[1]).toMatchObject(HEAD)
    expect(chunks[2]).toMatchObject({ ...HEAD, choices: [{ index: 0, delta: { content: 'c' } }] })
  })

  test('treats an absent or null delta as an empty one', () => {
    expect(
      feed(withDelta({ content: '' }), withDelta(null), { ...HEAD, choices: [{ index: 0 }] }).deltas.slice(1),
    ).toEqual([{}, {}])
  })

  test('uses one name for reasoning, and does not repeat it if both names occur', () => {
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
  ])('maps the finish reason %p to %p', (word, expected) => {
    const { chunks } = feed(withDelta({ content: 'a' }), withDelta({}, word))
    expect(chunks[1]?.choices[0]?.finish_reason ?? null).toBe(expected as 'stop')
  })

  test('ends each choice once, and drops a repeated finish and empty deltas after it', () => {
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

  test('sends text after the finish without ending the choice again', () => {
    const { chunks } = feed(withDelta({ content: 'a' }, 'stop'), withDelta({ content: 'b' }, 'stop'))
    expect(chunks[1]?.choices[0]).toMatchObject({ delta: { content: 'b' }, finish_reason: null })
  })

  test('reads usage beside a piece of text, wherever the provider puts it', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    const { chunks } = feed(
      withDelta({ content: 'a' }),
      { ...withDelta({ content: 'b' }), usage },
      { ...withDelta({ content: 'c' }), x_groq: { usage } },
    )
    expect(chunks.map((chunk) => chunk?.usage?.total_tokens)).toEqual([undefined, 2, 2])
  })

  test('keeps several choices apart, and adds a finish only to the open ones', () => {
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

  test('returns nothing for a chunk without choices and usage', () => {
    const { chunks, normaliser } = feed({ ...HEAD, choices: [] }, { ...HEAD }, { ...HEAD, choices: [null, 'x'] })
    expect(chunks).toEqual([undefined, undefined, undefined])
    expect(normaliser.hasStarted()).toBe(false)
    expect(normaliser.isFinished()).toBe(false)
  })

  test('ignores usage of all zeros, which some runtimes send with each chunk', () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    expect(feed({ ...withDelta({ content: 'a' }), usage }).chunks[0]?.usage).toBeNull()
  })

  test('keeps unknown members of a chunk, a choice and a delta', () => {
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

describe('streamed tool calls', () => {
  test('have id, type and name once, even if the provider repeats or blanks them', () => {
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

  test('get an index and an id if they have none', () => {
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

  test('are distinguished by id and name if all have the index 0', () => {
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

  test('get their own arguments if they are interleaved', () => {
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

  test('wait for a name, and then include the earlier arguments', () => {
    const { chunks } = feed(
      toolDelta({ index: 0, id: 'a', function: { arguments: '{' } }),
      toolDelta({ index: 0, function: { name: 'f', arguments: '}' } }),
    )
    expect(toolCallsIn(chunks)).toEqual([
      [],
      [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    ])
  })

  test('do not count without a name, so the finish is not tool_calls', () => {
    const { chunks } = feed(toolDelta({ index: 0, id: 'a', function: { arguments: '{}' } }), withDelta({}, 'stop'))
    expect(chunks[1]?.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' })
  })

  test('have JSON text for arguments that arrive as an object', () => {
    const { chunks } = feed(toolDelta({ index: 0, function: { name: 'f', arguments: { city: 'Köln' } } }))
    expect(toolCallsIn(chunks)[0]?.[0]?.function.arguments).toBe('{"city":"Köln"}')
  })

  test('are created from the older function_call', () => {
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

  test('turn a finish of `stop` into `tool_calls`, but no other finish', () => {
    const call = toolDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } })
    expect(feed(call, withDelta({}, 'stop')).chunks[1]?.choices[0]?.finish_reason).toBe('tool_calls')
    expect(feed(structuredClone(call), withDelta({}, 'length')).chunks[1]?.choices[0]?.finish_reason).toBe('length')
    expect(feed(structuredClone(call)).normaliser.missingFinish()?.choices[0]?.finish_reason).toBe('tool_calls')
  })

  test('are absent for an empty or null list', () => {
    const { chunks } = feed(
      withDelta({ content: 'a', tool_calls: [] }),
      withDelta({ tool_calls: null }),
      withDelta({}, 'stop'),
    )
    expect(chunks.map((chunk) => chunk?.choices[0]?.delta)).toEqual([{ role: 'assistant', content: 'a' }, {}, {}])
    expect(chunks[2]?.choices[0]?.finish_reason).toBe('stop')
  })
})
