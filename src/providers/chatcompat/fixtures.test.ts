/** The recorded streams of every vendor, split at every byte, become the same valid chunks. */
import { describe, expect, test } from 'bun:test'
import { createFixtureProvider, isChunk, isCompletion } from '../../../test/kit/fixture-provider.ts'
import type { ChatChunk } from '../../protocols/shared/canonical.ts'

const { fixture, read, complete } = createFixtureProvider('chatcompat')

async function chunksFrom(pieces: Uint8Array[], type?: string): Promise<ChatChunk[]> {
  const { chunks, failure } = await read(pieces, type === undefined ? {} : { type })
  if (failure) throw failure
  return chunks
}

/** Assembles the chunks of choice 0 as a client does. */
function assemble(chunks: ChatChunk[]) {
  const deltas = chunks.flatMap((chunk) => chunk.choices.filter((choice) => choice.index === 0))
  const calls: { id: string | undefined; name: string | undefined; arguments: string }[] = []
  for (const { delta } of deltas) {
    for (const { index = -1, id, function: part } of delta.tool_calls ?? []) {
      calls[index] ??= { id, name: part.name, arguments: '' }
      calls[index].arguments += part.arguments
    }
  }
  return {
    content: deltas.map(({ delta }) => delta.content ?? '').join(''),
    reasoning: deltas.map(({ delta }) => delta.reasoning_content ?? '').join(''),
    finish: deltas.map((choice) => choice.finish_reason).filter((reason) => typeof reason === 'string'),
    usage: chunks.findLast((chunk) => chunk.usage)?.usage,
    calls,
  }
}

const STREAMS: [string, string][] = [
  ['openai.sse', ''],
  ['azure.sse', ''],
  ['deepseek.sse', 'Ein Gruß also.'],
  ['groq.sse', 'Ein Gruß also.'],
  ['mistral.sse', 'Ein Gruß also.'],
  ['openrouter.sse', 'Ein Gruß also.'],
  ['ollama.sse', 'Ein Gruß also.'],
  ['gemini.sse', ''],
  ['perplexity.sse', ''],
  ['xai.sse', 'Ein Gruß also.'],
  ['llamacpp.sse', 'Ein Gruß also.'],
]

describe('recorded streams of vendors', () => {
  test.each(STREAMS)('%s has its text, its reasoning, one finish reason and its usage', async (name, reasoning) => {
    const chunks = await chunksFrom([fixture(name)])
    const assembled = assemble(chunks)
    expect(assembled).toMatchObject({ content: 'Guten Tag', reasoning, finish: ['stop'], calls: [] })
    expect(assembled.usage).toMatchObject({
      prompt_tokens: 19,
      completion_tokens: 10,
      total_tokens: 29,
      input_tokens: 19,
    })
  })

  test.each(['openai-tools.sse', 'ollama-tools.sse', 'gemini-tools.sse', 'vllm-tools.sse'])(
    '%s has its two tool calls, each with its id and name once, in its first chunk',
    async (name) => {
      const chunks = await chunksFrom([fixture(name)])
      const { calls, finish } = assemble(chunks)
      expect(calls).toMatchObject([
        { name: 'get_weather', arguments: '{"city":"Köln"}' },
        { name: 'get_time', arguments: '{}' },
      ])
      expect(finish).toEqual(['tool_calls'])
      expect(new Set(calls.map((call) => call.id)).size).toBe(2)
      const seen = new Set<number | undefined>()
      for (const call of chunks.flatMap((chunk) => chunk.choices).flatMap((choice) => choice.delta.tool_calls ?? [])) {
        if (seen.has(call.index)) expect(Object.keys(call).sort()).toEqual(['function', 'index'])
        else expect(call).toMatchObject({ id: expect.stringMatching(/./), type: 'function' })
        expect(call.function.name).toEqual(seen.has(call.index) ? undefined : expect.stringMatching(/^get_/))
        seen.add(call.index)
      }
    },
  )

  test.each([...STREAMS.map(([name]) => name), 'openai-tools.sse', 'vllm-tools.sse'])(
    '%s has the same chunks when it is split at any byte',
    async (name) => {
      const bytes = fixture(name)
      const expected = await chunksFrom([bytes])
      for (let cut = 1; cut < bytes.length; cut++) {
        expect(await chunksFrom([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(expected)
      }
    },
  )

  test.each([...STREAMS.map(([name]) => name), 'openai-tools.sse', 'gemini-tools.sse', 'vllm-tools.sse'])(
    '%s becomes chunks that fit the schema, with the role first and without null fields',
    async (name) => {
      const chunks = await chunksFrom([fixture(name)])
      for (const chunk of chunks) {
        // Extra fields such as Azure's annotation of an empty chunk are allowed; fields of the schema must fit it.
        expect({ fits: isChunk.Check(chunk), chunk }).toMatchObject({ fits: true })
        expect(chunk.id).not.toBe('')
        expect(chunk.model).not.toBe('')
        expect(chunk.choices.length > 0 || chunk.usage).toBeTruthy()
        expect(JSON.stringify(chunk)).not.toContain('obfuscation')
      }
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
      for (const choice of chunks.flatMap((chunk) => chunk.choices)) {
        expect(choice.delta).not.toHaveProperty('reasoning')
        expect(Object.values(choice.delta)).not.toContain(null)
      }
    },
  )

  test('vendor-specific fields are kept', async () => {
    expect((await chunksFrom([fixture('perplexity.sse')]))[0]).toMatchObject({ citations: ['https://example.com/a'] })
    expect((await chunksFrom([fixture('openrouter.sse')]))[0]).toMatchObject({ provider: 'Fireworks' })
  })

  test('cached and reasoning tokens are counted under every field name', async () => {
    const usageIn = async (name: string) => assemble(await chunksFrom([fixture(name)])).usage
    expect(await usageIn('openai.sse')).toMatchObject({ prompt_cache_hit_tokens: 8 })
    expect(await usageIn('deepseek.sse')).toMatchObject({ prompt_cache_hit_tokens: 16 })
    for (const name of ['deepseek.sse', 'groq.sse', 'openrouter.sse', 'xai.sse']) {
      expect(await usageIn(name)).toMatchObject({ completion_tokens_details: { reasoning_tokens: 6, text_tokens: 4 } })
    }
  })
})

describe('recorded whole responses of vendors', () => {
  test.each([
    ['openai.json', undefined],
    ['deepseek.json', 'Ein Gruß also.'],
    ['mistral.json', 'Ein Gruß also.'],
    ['openrouter.json', 'Ein Gruß also.'],
  ])('%s becomes a completion that fits the schema', async (name, reasoning) => {
    const completion = await complete(fixture(name))
    expect(isCompletion.Check(completion)).toBe(true)
    expect(completion?.choices[0]?.message).toMatchObject({ role: 'assistant', content: 'Guten Tag' })
    expect(completion?.choices[0]?.message.reasoning_content).toBe(reasoning as string)
    expect(completion?.choices[0]?.message).not.toHaveProperty('reasoning')
    expect(completion?.usage).toMatchObject({ prompt_tokens: 19, completion_tokens: 10, output_tokens: 10 })
  })

  test('citations stay in the message', async () => {
    const completion = await complete(fixture('openrouter.json'))
    expect(completion?.choices[0]?.message.annotations?.[0]?.url_citation.url).toBe('https://example.com/a')
  })

  test('tool calls get the id and the finish reason that the vendor omitted, and keep its signature', async () => {
    const completion = await complete(fixture('gemini-tools.json'))
    expect(completion?.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: null,
        tool_calls: [
          {
            id: expect.stringMatching(/^call_\w{24}$/),
            type: 'function',
            function: { name: 'get_weather', arguments: '{"city":"Köln"}' },
            extra_content: { google: { thought_signature: 'abc' } },
          },
        ],
      },
    })
    expect(completion?.usage?.completion_tokens).toBe(10) // the total includes six more reasoning tokens
  })

  test.each(['openai.sse', 'deepseek.sse', 'perplexity.sse'])(
    'a stream in place of a whole response is assembled: %s',
    async (name) => {
      const completion = await complete(fixture(name), { type: 'text/event-stream' })
      expect(isCompletion.Check(completion)).toBe(true)
      expect(completion?.choices[0]?.message.content).toBe('Guten Tag')
      expect(completion?.choices[0]?.finish_reason).toBe('stop')
      expect(completion?.usage?.total_tokens).toBe(29)
    },
  )

  test('tool calls of a stream in place of a whole response are assembled', async () => {
    const completion = await complete(fixture('openai-tools.sse'), { type: 'text/event-stream' })
    expect(completion?.choices[0]?.message.tool_calls).toEqual([
      { id: 'call_A1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Köln"}' } },
      { id: 'call_B2', type: 'function', function: { name: 'get_time', arguments: '{}' } },
    ])
  })

  test.each(['application/json', 'text/event-stream', 'text/plain'])(
    'a whole response in place of a stream becomes chunks, as %s',
    async (type) => {
      const chunks = await chunksFrom([fixture('deepseek.json')], type)
      expect(assemble(chunks)).toMatchObject({ content: 'Guten Tag', reasoning: 'Ein Gruß also.', finish: ['stop'] })
      expect(assemble(chunks).usage?.total_tokens).toBe(29)
      for (const chunk of chunks) expect(isChunk.Check(chunk)).toBe(true)
    },
  )

  test('tool calls of a whole response in place of a stream become chunks', async () => {
    const { calls, finish } = assemble(await chunksFrom([fixture('gemini-tools.json')], 'application/json'))
    expect(calls).toMatchObject([{ name: 'get_weather', arguments: '{"city":"Köln"}' }])
    expect(finish).toEqual(['tool_calls'])
  })
})
