/** The simulated provider behind its contract: its answers, the parameters that it applies, and its faults. */
import { describe, expect, test } from 'bun:test'
import Value from 'typebox/value'
import { countTokens, IMAGE_TOKENS } from '../packages/sandbox/src/tokens.ts'
import type { ChatChunk, ChatCompletion, ChatRequest } from '../src/protocols/shared/canonical.ts'
import type { ChatProvider } from '../src/providers/provider.ts'
import { createLazySandbox } from '../src/providers/sandbox.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'
import { ChatChunk as ChunkSchema, ChatCompletion as CompletionSchema } from '../src/spec/chat-completion.ts'
import { manualClock } from './kit/clock.ts'

const MANUAL = [
  {
    name: 'tokens.md',
    text: '# Tokens\n\n## Revoking a token\n\nA revoked token stops working within a second. Open streams go on.\n\n## Rotating a token\n\nA rotated token keeps its name. The old secret stops working, as if the token had been revoked.\n',
  },
  { name: 'streaming.md', text: '# Streaming\n\nSilence is broken by a keep-alive comment after fifteen seconds.\n' },
]

const clock = manualClock()
const chatOf = (parts: Partial<Parameters<typeof createLazySandbox>[0]> = {}): ChatProvider => {
  const { chat } = createLazySandbox({ id: 'sandbox', clock, manual: async () => MANUAL, ...parts })
  if (!chat) throw new Error('no chat')
  return chat
}
const chat = chatOf()

type Rest = Partial<ChatRequest>
const asking = (text: string, rest: Rest = {}): ChatRequest => ({
  model: 'sandbox/general',
  messages: [{ role: 'user', content: text }],
  ...rest,
})
const callOf = (request: ChatRequest, model = 'general') => ({ model, request, request_id: 'req_1' })
const never = () => new AbortController().signal
const whole = (text: string, rest: Rest = {}) => chat.complete(callOf(asking(text, rest)), never())

async function stream(request: ChatRequest, on = chat): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = []
  for await (const batch of on.chunks(callOf(request), never())) chunks.push(...batch)
  return chunks
}

const contentOf = (completion: ChatCompletion, index = 0) => completion.choices[index]?.message.content ?? ''
const finishOf = (completion: ChatCompletion, index = 0) => completion.choices[index]?.finish_reason
const outputOf = (completion: ChatCompletion) => completion.usage?.completion_tokens

/** Merges the chunks into the messages that a client sees, one for each choice. */
function fold(chunks: ChatChunk[]) {
  const choices: { content: string; reasoning: string; calls: string[]; names: string[]; finish: unknown }[] = []
  for (const { index, delta, finish_reason } of chunks.flatMap((chunk) => chunk.choices)) {
    choices[index] ??= { content: '', reasoning: '', calls: [], names: [], finish: undefined }
    const choice = choices[index]
    choice.content += delta.content ?? ''
    choice.reasoning += delta.reasoning_content ?? ''
    for (const call of delta.tool_calls ?? []) {
      const at = call.index ?? -1
      choice.calls[at] = (choice.calls[at] ?? '') + call.function.arguments
      if (call.function.name) choice.names[at] = call.function.name
    }
    if (finish_reason) choice.finish = finish_reason
  }
  return choices
}

describe('an answer', () => {
  test('has the shape of the specification, complete and streamed', async () => {
    const completion = await whole('Tell me about rivers')
    expect([...Value.Errors(CompletionSchema, completion)]).toEqual([])
    expect(completion).toMatchObject({ object: 'chat.completion', model: 'general', system_fingerprint: 'sandbox' })
    expect(completion.created).toBe(Math.floor(clock.now() / 1000))
    for (const chunk of await stream(asking('Tell me about rivers'))) {
      expect([...Value.Errors(ChunkSchema, chunk)]).toEqual([])
      expect(chunk).toMatchObject({ id: completion.id, object: 'chat.completion.chunk', system_fingerprint: 'sandbox' })
    }
  })

  test('declares itself simulated in its first sentence, mentions the topics of the prompt, and has a plausible length', async () => {
    for (const subject of ['volcanoes', 'bicycles', 'the history of Portugal', 'Wie spät ist es?', '山', '']) {
      const completion = await whole(subject)
      expect(contentOf(completion).split('.')[0]).toContain('simulated')
      expect(outputOf(completion)).toBeWithin(60, 160)
      expect(finishOf(completion)).toBe('stop')
    }
    expect(contentOf(await whole('Tell me about volcanoes'))).toContain('volcanoes')
  })

  test('is the same for the same request, streamed too, and differs for another request', async () => {
    const first = await whole('rivers')
    expect(await whole('rivers')).toEqual(first)
    expect(fold(await stream(asking('rivers', { stream: true })))[0]?.content).toBe(contentOf(first))
    for (const rest of [{ seed: 1 }, { temperature: 0.5 }, { top_p: 0.3 }, { presence_penalty: 1 }]) {
      expect(contentOf(await whole('rivers', rest))).not.toBe(contentOf(first))
    }
    expect(contentOf(await whole('river'))).not.toBe(contentOf(first))
    const other = await chat.complete(callOf(asking('rivers'), 'compact'), never())
    expect(contentOf(other)).not.toBe(contentOf(first))
  })

  test('quotes the manual and names its page and section when the question is about it', async () => {
    const text = contentOf(await whole('How do I revoke a token?'))
    expect(text.split('.')[0]).toContain('simulated vendor')
    expect(text).toContain('A revoked token stops working within a second. Open streams go on.')
    expect(text).toContain('page "tokens", section "Revoking a token"')
  })

  test('loads the manual once, and only when a question needs it', async () => {
    let opened = 0
    const counting = chatOf({
      manual: async () => {
        opened++
        return MANUAL
      },
    })
    await counting.complete(callOf(asking('@sandbox status=500\nhello')), never()).catch(() => undefined)
    await counting.complete(callOf(asking('rivers', { response_format: { type: 'json_object' } })), never())
    expect(opened).toBe(0)
    await counting.complete(callOf(asking('rivers')), never())
    await stream(asking('revoke a token'), counting)
    expect(opened).toBe(1)
  })

  test('loads the manual again for the next question if it could not be read', async () => {
    let opened = 0
    const failing = chatOf({
      manual: async () => {
        if (opened++ === 0) throw new Error('unreadable')
        return MANUAL
      },
    })
    await expect(failing.complete(callOf(asking('revoke a token')), never())).rejects.toThrow('unreadable')
    expect(contentOf(await failing.complete(callOf(asking('revoke a token')), never()))).toContain('within a second')
  })

  test('answers the first question that the gateway suggests, from its own manual', async () => {
    const own = chatOf({ manual: loadManual })
    const answer = await own.complete(callOf(asking('What is Gatehouse?')), never())
    expect(answer.choices[0]?.message.content).toContain('Gatehouse is a gateway to generative models')
    expect(answer.choices[0]?.message.content).toContain('page "getting-started", section "What Gatehouse is"')
  })

  test('works without a manual', async () => {
    const bare = chatOf({ manual: async () => [] })
    expect(contentOf(await bare.complete(callOf(asking('revoke a token')), never()))).toContain('simulated')
  })

  test('describes images by their header and counts a fixed number of tokens for each', async () => {
    const png = `data:image/png;base64,${Buffer.from([0x89, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 2, 128, 0, 0, 1, 224]).toString('base64')}`
    const part = (url: string) => ({ type: 'image_url' as const, image_url: { url } })
    const content = [{ type: 'text' as const, text: 'What is this' }, part(png), part('https://example.com/x.png')]
    const completion = await chat.complete(callOf(asking('', { messages: [{ role: 'user', content }] })), never())
    expect(contentOf(completion)).toContain('a PNG image of 640 x 480 pixels')
    expect(contentOf(completion)).toContain('does not fetch')
    expect(completion.usage?.prompt_tokens_details.image_tokens).toBe(2 * IMAGE_TOKENS)
    expect(completion.usage?.prompt_tokens).toBe(3 + 2 * IMAGE_TOKENS)
  })

  test('counts exactly the tokens of the prompt and of the answer', async () => {
    const completion = await whole('Hello there, sandbox', { thinking_enabled: true })
    const [choice] = completion.choices
    const reasoning = countTokens(choice?.message.reasoning_content ?? '')
    expect(reasoning).toBeGreaterThan(0)
    expect(completion.usage).toMatchObject({
      prompt_tokens: 4,
      completion_tokens: reasoning + countTokens(contentOf(completion)),
      prompt_cache_hit_tokens: 0,
      completion_tokens_details: { reasoning_tokens: reasoning },
    })
  })
})

describe('a stream', () => {
  test('has a role, a chunk for each token, a finish_reason, and the usage last', async () => {
    const chunks = await stream(asking('@sandbox tokens=3\nrivers'))
    const delta = (value: object) => ({ index: 0, delta: value, logprobs: null, finish_reason: null })
    expect(chunks.map((chunk) => chunk.choices)).toEqual([
      [delta({ role: 'assistant', content: '' })],
      [delta({ content: 'This' })],
      [delta({ content: ' is' })],
      [delta({ content: ' simulate' })],
      [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }],
      [],
    ])
    expect(chunks.map((chunk) => chunk.usage?.completion_tokens)).toEqual([...Array(5).fill(undefined), 3])
  })

  test('has the reasoning before the content, complete too', async () => {
    for (const rest of [{ thinking_enabled: true }, { reasoning_effort: 'low' as const }]) {
      const chunks = await stream(asking('rivers', rest))
      const kinds = chunks.flatMap(({ choices: [choice] }) => Object.keys(choice?.delta ?? {}).slice(0, 1))
      expect(kinds.indexOf('content')).toBeGreaterThan(kinds.lastIndexOf('reasoning_content'))
      expect(fold(chunks)[0]?.reasoning).toBe((await whole('rivers', rest)).choices[0]?.message.reasoning_content)
    }
    for (const rest of [{}, { thinking_enabled: false }, { reasoning_effort: 'none' as const }]) {
      expect(fold(await stream(asking('rivers', rest)))[0]?.reasoning).toBe('')
    }
  })

  test('has more reasoning with more effort', async () => {
    const length = async (reasoning_effort: 'minimal' | 'medium' | 'max') =>
      (await whole('rivers', { reasoning_effort })).usage?.completion_tokens_details.reasoning_tokens ?? 0
    expect(await length('minimal')).toBeLessThan(await length('medium'))
    expect(await length('medium')).toBeLessThan(await length('max'))
  })

  test('alternates between choices, which differ and have their own role and finish_reason', async () => {
    const chunks = await stream(asking('rivers', { n: 3 }))
    expect(chunks.slice(0, 6).map(({ choices: [choice] }) => choice?.index)).toEqual([0, 1, 2, 0, 1, 2])
    const choices = fold(chunks)
    expect(new Set(choices.map(({ content }) => content)).size).toBe(3)
    expect(choices.map(({ finish }) => finish)).toEqual(['stop', 'stop', 'stop'])
    const completion = await whole('rivers', { n: 3 })
    expect(completion.choices.map(({ message }) => message.content)).toEqual(choices.map(({ content }) => content))
    expect(outputOf(completion)).toBe(choices.reduce((sum, { content }) => sum + countTokens(content), 0))
  })

  test('has different choices about the manual too', async () => {
    const completion = await whole('How do I revoke a token?', { n: 4 })
    expect(new Set(completion.choices.map(({ message }) => message.content)).size).toBe(4)
  })
})

describe('limits', () => {
  test('max_tokens is exact: it cuts below the length, not at the length', async () => {
    const full = await whole('rivers')
    const length = outputOf(full) ?? 0
    for (const name of ['max_tokens', 'max_completion_tokens'] as const) {
      const cut = await whole('rivers', { [name]: length - 1 })
      expect([outputOf(cut), finishOf(cut)]).toEqual([length - 1, 'length'])
      expect(contentOf(full).startsWith(contentOf(cut))).toBe(true)
      const exact = await whole('rivers', { [name]: length })
      expect([outputOf(exact), finishOf(exact)]).toEqual([length, 'stop'])
    }
    expect(outputOf(await whole('rivers', { max_tokens: 1 }))).toBe(1)
    expect(outputOf(await whole('rivers', { max_tokens: 9, max_completion_tokens: 5 }))).toBe(5)
  })

  test('reasoning counts against max_tokens', async () => {
    const cut = await whole('rivers', { thinking_enabled: true, max_tokens: 5 })
    expect([outputOf(cut), finishOf(cut), contentOf(cut)]).toEqual([5, 'length', ''])
    expect(cut.usage?.completion_tokens_details.reasoning_tokens).toBe(5)
  })

  test('max_tokens cuts a call to exactly that many tokens', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }]
    const request = { tools, tool_choice: 'required' as const }
    const length = outputOf(await whole('rivers', request)) ?? 0
    for (const max_tokens of [1, 4, length - 1]) {
      const cut = await whole('rivers', { ...request, max_tokens })
      expect([outputOf(cut), finishOf(cut)]).toEqual([max_tokens, 'length'])
    }
    expect(finishOf(await whole('rivers', { ...request, max_tokens: length }))).toBe('tool_calls')
  })

  test('a stop sequence ends the text before it, wherever tokens are split', async () => {
    const full = contentOf(await whole('rivers'))
    for (let at = 1; at < full.length - 5; at += 7) {
      const stop = full.slice(at, at + 5)
      const stopped = await whole('rivers', { stop })
      expect(contentOf(stopped)).toBe(full.slice(0, full.indexOf(stop)))
      expect([finishOf(stopped), outputOf(stopped)]).toEqual(['stop', countTokens(contentOf(stopped))])
    }
    expect(contentOf(await whole('rivers', { stop: ['sandbox', 'text', 'absent', ''] }))).toBe('This is simulated ')
    expect(contentOf(await whole('rivers', { stop: 'never said' }))).toBe(full)
    expect(fold(await stream(asking('rivers', { stop: 'text' })))[0]?.content).toBe('This is simulated ')
  })

  test('the first of a stop sequence and max_tokens ends the text', async () => {
    const stopped = await whole('rivers', { stop: 'text', max_tokens: 10 })
    expect([contentOf(stopped), finishOf(stopped)]).toEqual(['This is simulated ', 'stop'])
    const cut = await whole('rivers', { stop: 'text', max_tokens: 2 })
    expect([contentOf(cut), finishOf(cut)]).toEqual(['This is', 'length'])
  })
})
