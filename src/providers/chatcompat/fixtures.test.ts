/** Every vendor's true shape, read as a stream cut at every byte, ends in the same clean chunks. */
import { describe, expect, test } from 'bun:test'
import { isChunk, isCompletion, playedTo } from '../../../test/kit/played.ts'
import type { ChatChunk } from '../../protocols/canonical.ts'

const { fixture, read, whole } = playedTo('chatcompat')

async function chunksFrom(pieces: Uint8Array[], type?: string): Promise<ChatChunk[]> {
  const { chunks, failure } = await read(pieces, type === undefined ? {} : { type })
  if (failure) throw failure
  return chunks
}

/** What a client makes of the chunks of choice 0. */
function heard(chunks: ChatChunk[]) {
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

describe('streams in the recorded formats of vendors', () => {
  test.each(STREAMS)('%s has its text, its reasoning, one finish and its usage', async (name, reasoning) => {
    const chunks = await chunksFrom([fixture(name)])
    const said = heard(chunks)
    expect(said).toMatchObject({ content: 'Guten Tag', reasoning, finish: ['stop'], calls: [] })
    expect(said.usage).toMatchObject({ prompt_tokens: 19, completion_tokens: 10, total_tokens: 29, input_tokens: 19 })
  })

  test.each(['openai-tools.sse', 'ollama-tools.sse', 'gemini-tools.sse', 'vllm-tools.sse'])(
    '%s has its two tool calls, each with its id and name first and once',
    async (name) => {
      const chunks = await chunksFrom([fixture(name)])
      const { calls, finish } = heard(chunks)
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
    '%s decodes to the same chunks when it is split in two at any byte',
    async (name) => {
      const bytes = fixture(name)
      const expected = await chunksFrom([bytes])
      for (let cut = 1; cut < bytes.length; cut++) {
        expect(await chunksFrom([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(expected)
      }
    },
  )

  test.each([...STREAMS.map(([name]) => name), 'openai-tools.sse', 'gemini-tools.sse', 'vllm-tools.sse'])(
    '%s becomes chunks that fit the specified schema: the role comes first and each choice ends once',
    async (name) => {
      const chunks = await chunksFrom([fixture(name)])
      for (const chunk of chunks) {
        // Azure's annotation of an empty chunk and the like are allowed; what has a name in the schema must fit it.
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

  test('fields that a vendor adds are kept', async () => {
    expect((await chunksFrom([fixture('perplexity.sse')]))[0]).toMatchObject({ citations: ['https://example.com/a'] })
    expect((await chunksFrom([fixture('openrouter.sse')]))[0]).toMatchObject({ provider: 'Fireworks' })
  })

  test('cached and reasoning tokens are read in every spelling', async () => {
    const usageIn = async (name: string) => heard(await chunksFrom([fixture(name)])).usage
    expect(await usageIn('openai.sse')).toMatchObject({ prompt_cache_hit_tokens: 8 })
    expect(await usageIn('deepseek.sse')).toMatchObject({ prompt_cache_hit_tokens: 16 })
    for (const name of ['deepseek.sse', 'groq.sse', 'openrouter.sse', 'xai.sse']) {
      expect(await usageIn(name)).toMatchObject({ completion_tokens_details: { reasoning_tokens: 6, text_tokens: 4 } })
    }
  })
})

describe('complete responses in the recorded formats of vendors', () => {
  test.each([
    ['openai.json', undefined],
    ['deepseek.json', 'Ein Gruß also.'],
    ['mistral.json', 'Ein Gruß also.'],
    ['openrouter.json', 'Ein Gruß also.'],
  ])('%s becomes a completion that fits the specification', async (name, reasoning) => {
    const answer = await whole(fixture(name))
    expect(isCompletion.Check(answer)).toBe(true)
    expect(answer?.choices[0]?.message).toMatchObject({ role: 'assistant', content: 'Guten Tag' })
    expect(answer?.choices[0]?.message.reasoning_content).toBe(reasoning as string)
    expect(answer?.choices[0]?.message).not.toHaveProperty('reasoning')
    expect(answer?.usage).toMatchObject({ prompt_tokens: 19, completion_tokens: 10, output_tokens: 10 })
  })

  test('citations stay in the message', async () => {
    const answer = await whole(fixture('openrouter.json'))
    expect(answer?.choices[0]?.message.annotations?.[0]?.url_citation.url).toBe('https://example.com/a')
  })

  test('tool calls get the id and finish_reason that the vendor omitted, and keep its signature', async () => {
    const answer = await whole(fixture('gemini-tools.json'))
    expect(answer?.choices[0]).toMatchObject({
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
    expect(answer?.usage?.completion_tokens).toBe(10) // the total says that six more were thought
  })

  test('a stream that arrives in place of a complete response is assembled', async () => {
    for (const name of ['openai.sse', 'deepseek.sse', 'perplexity.sse']) {
      const answer = await whole(fixture(name), { type: 'text/event-stream' })
      expect(isCompletion.Check(answer)).toBe(true)
      expect(answer?.choices[0]?.message.content).toBe('Guten Tag')
      expect(answer?.choices[0]?.finish_reason).toBe('stop')
      expect(answer?.usage?.total_tokens).toBe(29)
    }
    const answer = await whole(fixture('openai-tools.sse'), { type: 'text/event-stream' })
    expect(answer?.choices[0]?.message.tool_calls).toEqual([
      { id: 'call_A1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Köln"}' } },
      { id: 'call_B2', type: 'function', function: { name: 'get_time', arguments: '{}' } },
    ])
  })

  test('a complete response that arrives in place of a stream is converted to chunks, whatever its content type', async () => {
    for (const type of ['application/json', 'text/event-stream', 'text/plain']) {
      const chunks = await chunksFrom([fixture('deepseek.json')], type)
      expect(heard(chunks)).toMatchObject({ content: 'Guten Tag', reasoning: 'Ein Gruß also.', finish: ['stop'] })
      expect(heard(chunks).usage?.total_tokens).toBe(29)
      for (const chunk of chunks) expect(isChunk.Check(chunk)).toBe(true)
    }
    const { calls, finish } = heard(await chunksFrom([fixture('gemini-tools.json')], 'application/json'))
    expect(calls).toMatchObject([{ name: 'get_weather', arguments: '{"city":"Köln"}' }])
    expect(finish).toEqual(['tool_calls'])
  })
})
