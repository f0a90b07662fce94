import { describe, expect, test } from 'bun:test'
import type { ChatChunk } from '../../../src/providers/provider.ts'
import { createLazySandbox } from '../../../src/providers/sandbox.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { type ManualClock, manualClock } from '../../../test/kit/clock.ts'

function start(clock: ManualClock = manualClock()) {
  const { chat } = createLazySandbox({ id: 'sandbox', clock, manual: async () => [] })
  if (!chat) throw new Error('no chat')
  const abort = new AbortController()
  const call = (line: string, rest: object = {}) => ({
    model: 'general',
    request_id: 'req_1',
    request: {
      model: 'sandbox/general',
      messages: [{ role: 'user' as const, content: `rivers\n@sandbox ${line}` }],
      ...rest,
    },
  })
  return {
    clock,
    abort,
    whole: (line: string, rest?: object) => chat.complete(call(line, rest), abort.signal),
    count: (line: string, rest?: object) => chat.countTokens?.(call(line, rest), abort.signal),
    chunks: (line: string, rest?: object) => chat.chunks(call(line, rest), abort.signal)[Symbol.asyncIterator](),
  }
}

/** Runs everything that does not wait for the clock. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

/** All chunks until the end or the error, and the error. */
async function drain(chunks: AsyncIterator<ChatChunk[]>): Promise<{ got: ChatChunk[]; error: unknown }> {
  const got: ChatChunk[] = []
  for (;;) {
    const step = await chunks.next().catch((error: unknown) => ({ error }))
    if ('error' in step) return { got, error: step.error }
    if (step.done) return { got, error: undefined }
    got.push(...step.value)
  }
}

const codeOf = (error: unknown) => (error instanceof GatewayError ? error.code : error)
const pieces = (chunks: ChatChunk[]) => chunks.filter(({ choices }) => choices[0]?.delta.content).length
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: unknown) => error,
  )

describe('countTokens', () => {
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  const content = [
    { type: 'text', text: 'What is this, s\u00e9\u00f1or?' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
  ]
  test.each([
    ['a text', {}],
    ['tools', { tools, tool_choice: 'none' }],
    ['an image', { messages: [{ role: 'user', name: 'Ada', content }] }],
  ])('returns the tokens that the usage of the same request has: %s', async (_, rest) => {
    const { usage } = await start().whole('tokens=1', rest)
    expect(usage?.prompt_tokens).toBeGreaterThan(5)
    expect(await start().count('tokens=1', rest)).toBe(usage?.prompt_tokens ?? 0)
  })

  test('refuses a prompt that is too long to be answered', async () => {
    const messages = [{ role: 'user', content: 'a'.repeat(1_000_001) }]
    expect(
      codeOf(
        await start()
          .count('', { messages })
          ?.catch((error: unknown) => error),
      ),
    ).toBe('context_length_exceeded')
  })
})

describe('@sandbox tokens', () => {
  test.each([0, 1, 2, 150, 999, 5000])('%i returns exactly that many content chunks and tokens', async (tokens) => {
    const { got } = await drain(start().chunks(`tokens=${tokens}`))
    expect(pieces(got)).toBe(tokens)
    expect(got.at(-1)?.usage?.completion_tokens).toBe(tokens)
    const completion = await start().whole(`tokens=${tokens}`)
    expect(completion.usage?.completion_tokens).toBe(tokens)
    expect(completion.choices[0]?.finish_reason).toBe('stop')
  })

  test('100000 returns that many tokens', async () => {
    expect((await start().whole('tokens=100000')).usage?.completion_tokens).toBe(100_000)
  })

  test('returns the exact number with reasoning, images, citations and a tool result in the answer', async () => {
    const messages = (content: string) => [
      { role: 'user', content },
      { role: 'tool', tool_call_id: 'x', content: 'ends in blanks   ' },
    ]
    for (let tokens = 0; tokens < 120; tokens++) {
      const line = `rivers\n@sandbox tokens=${tokens}`
      for (const rest of [{ thinking_enabled: true }, { web_search: { enable: true } }, { messages: messages(line) }]) {
        expect((await start().whole(`tokens=${tokens}`, rest)).usage?.completion_tokens).toBe(tokens)
      }
    }
  })

  test('is limited by max_tokens: finish_reason is stop at the limit, and length above it', async () => {
    const ask = async (tokens: number) => {
      const completion = await start().whole(`tokens=${tokens}`, { max_tokens: 10 })
      return [completion.usage?.completion_tokens, completion.choices[0]?.finish_reason]
    }
    expect(await ask(9)).toEqual([9, 'stop'])
    expect(await ask(10)).toEqual([10, 'stop'])
    expect(await ask(11)).toEqual([10, 'length'])
  })

  test('does not belong to the question and does not change the text', async () => {
    const [plain, slow] = [await start().whole('usage=none'), await start().whole('finish=stop')]
    expect(plain.choices).toEqual(slow.choices)
    expect(plain.choices[0]?.message.content).not.toContain('@sandbox')
  })
})

describe('@sandbox timing', () => {
  test('interval_ms sends one chunk at a time, with a pause between two', async () => {
    const { clock, chunks } = start()
    const stream = chunks('tokens=2 interval_ms=50')
    expect((await stream.next()).value).toHaveLength(1)
    for (let count = 0; count < 4; count++) {
      let arrived: ChatChunk[] | undefined
      const next = stream.next().then(({ value }) => {
        arrived = value
      })
      await settle()
      clock.advance(49)
      await settle()
      expect(arrived).toBeUndefined()
      clock.advance(1)
      await next
      expect(arrived).toHaveLength(1)
    }
    expect((await stream.next()).done).toBe(true)
  })

  test('first_ms delays the first chunk, and an error too', async () => {
    for (const line of ['first_ms=300', 'first_ms=300 status=500']) {
      const { clock, chunks } = start()
      let settled = false
      const next = chunks(line)
        .next()
        .then(
          () => undefined,
          () => undefined,
        )
        .then(() => {
          settled = true
        })
      await settle()
      clock.advance(299)
      await settle()
      expect(settled).toBe(false)
      clock.advance(1)
      await next
    }
  })

  test('a complete answer takes as long as the same answer streamed', async () => {
    const { clock, whole } = start()
    let settled = false
    const answer = whole('tokens=2 first_ms=100 interval_ms=50').then(() => {
      settled = true
    })
    // Five chunks: the role, two tokens, the finish_reason, the usage.
    for (let waited = 0; waited < 100 + 4 * 50; waited += 10) {
      await settle()
      expect(settled).toBe(false)
      clock.advance(10)
    }
    await answer
  })

  test('without a pause, chunks are sent in batches and no timer is set', async () => {
    const { clock, chunks } = start()
    const stream = chunks('tokens=100')
    const sizes: number[] = []
    for (let step = await stream.next(); !step.done; step = await stream.next()) sizes.push(step.value.length)
    expect(sizes).toEqual([32, 32, 32, 7])
    expect(clock.waiting()).toBe(0)
  })
})

describe('@sandbox status', () => {
  test.each([
    [400, 'upstream_invalid_request'],
    [401, 'upstream_auth'],
    [402, 'no_available_channel'],
    [403, 'upstream_auth'],
    [404, 'bad_upstream_response'],
    [408, 'upstream_timeout'],
    [413, 'request_too_large'],
    [422, 'upstream_invalid_request'],
    [429, 'rate_limit_exceeded'],
    [500, 'bad_upstream_response'],
    [502, 'bad_upstream_response'],
    [503, 'server_is_overloaded'],
    [504, 'upstream_timeout'],
    [529, 'server_is_overloaded'],
    [599, 'bad_upstream_response'],
  ])('%i fails with %s before any chunk, as with a real provider', async (status, code) => {
    const { got, error } = await drain(start().chunks(`status=${status}`))
    expect([got.length, codeOf(error)]).toEqual([0, code])
    const same = await failureOf(start().whole(`status=${status}`))
    expect(same).toBeInstanceOf(GatewayError)
    expect((same as GatewayError).detail.upstream_status).toBe(status)
    expect((same as GatewayError).detail.retry_after).toBeUndefined()
  })

  test('retry_after is returned in seconds', async () => {
    for (const line of ['status=429 retry_after=7', 'status=503 retry_after=7']) {
      expect(await failureOf(start().whole(line))).toMatchObject({ detail: { retry_after: 7 } })
    }
  })
})

describe('@sandbox faults', () => {
  // tokens=2 returns five chunks: the role, two tokens, the finish_reason, the usage.
  for (const [key, code] of [
    ['cut_after', 'upstream_cut'],
    ['error_after', 'bad_upstream_response'],
  ] as const) {
    test(`${key} strikes after exactly that many chunks, streamed and whole`, async () => {
      for (let after = 0; after < 5; after++) {
        const { got, error } = await drain(start().chunks(`tokens=2 ${key}=${after}`))
        expect([got.length, codeOf(error)]).toEqual([after, code])
        expect(codeOf(await failureOf(start().whole(`tokens=2 ${key}=${after}`)))).toBe(code)
      }
    })

    test(`${key} past the last chunk does nothing`, async () => {
      const { got, error } = await drain(start().chunks(`tokens=2 ${key}=5`))
      expect([got.length, error]).toEqual([5, undefined])
      expect(await failureOf(start().whole(`tokens=2 ${key}=5`))).toBe('answered')
    })

    test(`${key} strikes beyond one batch, and with a pause between chunks`, async () => {
      const far = await drain(start().chunks(`tokens=100 ${key}=40`))
      expect([far.got.length, codeOf(far.error)]).toEqual([40, code])
      const { clock, chunks } = start()
      const draining = drain(chunks(`tokens=100 ${key}=3 interval_ms=10`))
      for (let count = 0; count < 5; count++) {
        await settle()
        clock.advance(10)
      }
      const slow = await draining
      expect([slow.got.length, codeOf(slow.error)]).toEqual([3, code])
    })
  }

  test('hang_after sends nothing after exactly that many chunks until the signal is aborted', async () => {
    for (const after of [0, 1, 3, 40]) {
      const { abort, clock, chunks } = start()
      const stream = chunks(`tokens=50 hang_after=${after}`)
      const got: ChatChunk[] = []
      while (got.length < after) got.push(...((await stream.next()).value ?? []))
      expect(got).toHaveLength(after)
      let ended = false
      const next = failureOf(stream.next()).then((error) => {
        ended = true
        return error
      })
      await settle()
      clock.advance(10_000_000)
      await settle()
      expect(ended).toBe(false)
      abort.abort(new Error('gone'))
      expect(await next).toEqual(new Error('gone'))
    }
  })

  test('a complete answer that hangs ends when the signal is aborted', async () => {
    const { abort, whole } = start()
    const answer = failureOf(whole('hang_after=0'))
    await settle()
    abort.abort(new Error('gone'))
    expect(await answer).toEqual(new Error('gone'))
  })

  test('the first of several faults occurs', async () => {
    const { got, error } = await drain(start().chunks('hang_after=9 error_after=2 cut_after=4'))
    expect([got.length, codeOf(error)]).toEqual([2, 'bad_upstream_response'])
  })
})

describe('@sandbox usage and finish', () => {
  test('usage=none returns no usage', async () => {
    const { got } = await drain(start().chunks('tokens=2 usage=none'))
    expect(got).toHaveLength(4)
    expect(got.some((chunk) => 'usage' in chunk || chunk.choices.length === 0)).toBe(false)
    expect(await start().whole('usage=none')).not.toContainKey('usage')
  })

  test.each(['content_filter', 'length', 'stop'])('finish=%s is the finish_reason of every choice', async (reason) => {
    const { choices } = await start().whole(`finish=${reason}`, { n: 2, max_tokens: 5 })
    expect(choices.map((choice) => String(choice.finish_reason))).toEqual([reason, reason])
  })
})

describe('directives', () => {
  test('are read from all text parts of the last user message only', async () => {
    const user = (content: unknown) => ({ role: 'user', content })
    const ask = async (messages: unknown[]) => (await start().whole('', { messages })).usage?.completion_tokens
    expect(await ask([user('@sandbox tokens=3')])).toBe(3)
    expect(await ask([user('@sandbox tokens=3'), user('hello')])).toBeGreaterThan(3)
    expect(await ask([user('hello'), { role: 'system', content: '@sandbox tokens=3' }])).toBeGreaterThan(3)
    expect(await ask([user('@sandbox tokens=3'), { role: 'assistant', content: 'yes' }])).toBe(3)
    const parts = [
      { type: 'text', text: 'hello' },
      { type: 'text', text: '@sandbox tokens=4' },
    ]
    expect(await ask([user(parts)])).toBe(4)
  })

  test('an unknown directive is rejected before any chunk', async () => {
    const { got, error } = await drain(start().chunks('tokens=many'))
    expect([got.length, codeOf(error)]).toEqual([0, 'upstream_invalid_request'])
    expect(String(error)).toContain('tokens=0..100000')
  })
})

describe('an abort', () => {
  const reason = new Error('gone')

  test('before the start ends the call at once', async () => {
    const { abort, whole, chunks } = start()
    abort.abort(reason)
    expect(await failureOf(whole('tokens=2'))).toBe(reason)
    expect((await drain(chunks('tokens=2'))).error).toBe(reason)
  })

  test.each(['first_ms=500', 'interval_ms=500'])(
    'in the middle of %s ends it at once and leaves no timer',
    async (line) => {
      for (const kind of ['whole', 'chunks'] as const) {
        const { abort, clock, whole, chunks } = start()
        const work = kind === 'whole' ? failureOf(whole(line)) : drain(chunks(line)).then(({ error }) => error)
        await settle()
        expect(clock.waiting()).toBe(1)
        abort.abort(reason)
        expect(await work).toBe(reason)
        expect(clock.waiting()).toBe(0)
      }
    },
  )

  test('between two batches ends the stream', async () => {
    const { abort, chunks } = start()
    const stream = chunks('tokens=1000')
    await stream.next()
    abort.abort(reason)
    expect(await failureOf(stream.next())).toBe(reason)
  })

  test('by the reader stops the generation', async () => {
    const { clock, chunks } = start()
    const stream = chunks('tokens=1000 interval_ms=5')
    await stream.next()
    await stream.return?.()
    expect(clock.waiting()).toBe(0)
    expect((await stream.next()).done).toBe(true)
  })
})

describe('a long prompt', () => {
  const complete = (content: string, rest: object = {}) =>
    failureOf(start().whole('tokens=1', { messages: [{ role: 'user', content }], ...rest }))

  test('is answered up to 1,000,000 characters, and refused above before any other work', async () => {
    expect(await complete('a '.repeat(500_000))).toBe('answered')
    expect(codeOf(await complete(`${'a '.repeat(500_000)}a`))).toBe('context_length_exceeded')
    const tools = [{ type: 'function', function: { name: 'f', description: 'a'.repeat(1_000_000) } }]
    expect(codeOf(await complete('a', { tools }))).toBe('context_length_exceeded')
  })

  test('counts the text of every message, and no images', async () => {
    const messages = Array.from({ length: 11 }, () => ({ role: 'user', content: 'a'.repeat(100_000) }))
    expect(codeOf(await complete('', { messages }))).toBe('context_length_exceeded')
    const url = `data:image/png;base64,${'A'.repeat(1_500_000)}`
    const content = [{ type: 'image_url', image_url: { url } }]
    expect(await complete('', { messages: [{ role: 'user', content }] })).toBe('answered')
  })
})
