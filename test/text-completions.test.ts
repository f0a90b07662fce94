/** `POST /v1/completions`: the legacy API for every chat model, in-process and with the `openai` package. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import { startGateway } from './kit/gateway.ts'
import { type Served, serve } from './kit/served.ts'
import { chunk, chunks, completion, failure, hang, startVendor, stream, whole } from './kit/vendor.ts'

let served: Served
let client: OpenAI
beforeAll(async () => {
  served = await serve()
  client = new OpenAI({ baseURL: served.url, apiKey: served.token, maxRetries: 0, logLevel: 'off' })
})
beforeEach(() => {
  served.vendor.requests.length = 0
})
afterAll(() => served.close())

type Fields = Partial<OpenAI.CompletionCreateParamsNonStreaming>
const create = (fields: Fields = {}) => client.completions.create({ model: 'v/m', prompt: 'Once', ...fields })
const streamOf = (fields: Partial<OpenAI.CompletionCreateParamsStreaming> = {}) =>
  client.completions.create({ model: 'v/m', prompt: 'Once', ...fields, stream: true })
const sent = (at = 0) => served.vendor.requests[at]?.json() ?? {}
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = []
  for await (const item of items) out.push(item)
  return out
}
/** The text of each choice, by index. */
const textsOf = (list: OpenAI.Completion[]) => {
  const texts: string[] = []
  for (const { choices } of list) for (const { index, text } of choices) texts[index] = (texts[index] ?? '') + text
  return texts
}
const token = (text: string, logprob: number, top: [string, number][] = []) => ({
  token: text,
  logprob,
  bytes: null,
  top_logprobs: top.map(([other, value]) => ({ token: other, logprob: value, bytes: null })),
})
const choice = (index: number, content: string, logprobs: object[] | null = null, finish_reason = 'stop') => ({
  index,
  message: { role: 'assistant', content, refusal: null },
  logprobs: logprobs && { content: logprobs, refusal: null },
  finish_reason,
})
async function refusal(fields: Record<string, unknown>): Promise<{ status: number; code: string; param: string }> {
  const response = await served.gateway.call('/v1/completions', { json: { model: 'v/m', prompt: 'Once', ...fields } })
  const { error } = (await response.json()) as { error: { code: string; param: string } }
  return { status: response.status, code: error.code, param: error.param }
}

describe('POST /v1/completions', () => {
  it('sends the prompt as the one message of a chat, with 16 tokens at most', async () => {
    served.vendor.answer(whole(completion(' upon a time')))
    const answer = await create({ temperature: 0.5, stop: ['\n'], seed: 7, user: 'u' })
    expect(sent()).toMatchObject({
      messages: [{ role: 'user', content: 'Once' }],
      max_tokens: 16,
      temperature: 0.5,
      stop: ['\n'],
      seed: 7,
      user: 'u',
    })
    for (const field of ['prompt', 'logprobs', 'n', 'echo', 'best_of', 'suffix']) expect(sent()[field]).toBeUndefined()
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^cmpl-\w{24}$/),
      object: 'text_completion',
      model: 'v/m',
      system_fingerprint: 'fp_test',
      choices: [{ index: 0, text: ' upon a time', logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
    })
  })

  it('sends the number of tokens that the client requests', async () => {
    await create({ max_tokens: 17 })
    expect(sent().max_tokens).toBe(17)
  })

  it('completes each prompt of a list, in its order, with the usage of all', async () => {
    served.vendor.answer(
      async (wire) => {
        await served.vendor.request(2) // the second prompt is sent before the first is answered
        await whole(completion(' A'))(wire)
      },
      whole(completion(' B')),
    )
    const answer = await create({ prompt: ['a', 'b'] })
    const byPrompt = new Map(served.vendor.requests.map(({ json }) => [JSON.stringify(json().messages), 1]))
    expect([...byPrompt.keys()].sort()).toEqual(
      ['a', 'b'].map((content) => JSON.stringify([{ role: 'user', content }])),
    )
    expect(answer.choices.map(({ index }) => index)).toEqual([0, 1])
    expect(answer.choices.map(({ text }) => text).sort()).toEqual([' A', ' B'])
    expect(answer.usage).toMatchObject({ prompt_tokens: 18, completion_tokens: 6, total_tokens: 24 })
    const lines = served.gateway.logged().split('\n')
    const line = JSON.parse(lines.findLast((one) => one.includes('"/v1/completions"')) ?? '{}')
    expect(line).toMatchObject({ status: 200, model: 'v/m', input_tokens: 18, output_tokens: 6 })
    expect(line.attempts).toMatchObject([{ target: 'v/m' }, { target: 'v/m' }])
  })

  it('numbers the choices of the first prompt before those of the second', async () => {
    const two = (first: string, second: string) => completion('', { choices: [choice(0, first), choice(1, second)] })
    served.vendor.otherwise((wire) => {
      const [{ content = '' } = {}] = wire.request.json().messages as { content?: string }[]
      return whole(two(`${content}0`, `${content}1`))(wire)
    })
    const answer = await create({ prompt: ['a', 'b'], n: 2 })
    expect(sent().n).toBe(2)
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'a0'],
      [1, 'a1'],
      [2, 'b0'],
      [3, 'b1'],
    ])
    served.vendor.otherwise(whole(completion('Hello')))
  })

  it('asks for what is between the prompt and the suffix', async () => {
    await create({ prompt: 'def add(a, b):\n', suffix: '\nprint(add(1, 2))' })
    const messages = sent().messages as { role: string; content: string }[]
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(messages[1]?.content).toBe('<before>def add(a, b):\n</before>\n<after>\nprint(add(1, 2))</after>')
  })

  it('puts the prompt before each completion with echo', async () => {
    served.vendor.answer(whole(completion(' upon')))
    expect((await create({ echo: true })).choices[0]?.text).toBe('Once upon')
  })

  it('returns the most likely of several candidates, by token', async () => {
    served.vendor.answer(
      whole(
        completion('', {
          choices: [
            choice(0, 'long but likely', [token('long', -0.1), token('likely', -0.1), token('!', -0.1)]),
            choice(1, 'unlikely', [token('unlikely', -0.2)]),
            choice(2, 'worst', [token('worst', -3)]),
          ],
        }),
      ),
    )
    const answer = await create({ best_of: 3, n: 2 })
    expect(sent()).toMatchObject({ n: 3, logprobs: true })
    expect(answer.choices).toEqual([
      { index: 0, text: 'long but likely', logprobs: null, finish_reason: 'stop' },
      { index: 1, text: 'unlikely', logprobs: null, finish_reason: 'stop' },
    ])
  })

  it('returns the first candidates where the provider returns no log probabilities', async () => {
    served.vendor.answer(whole(completion('', { choices: [choice(0, 'first'), choice(1, 'second')] })))
    expect((await create({ best_of: 2 })).choices.map(({ text }) => text)).toEqual(['first'])
  })

  it('translates log probabilities; offsets count code points', async () => {
    const content = [token('😀', -0.5, [['x', -1]]), token(' b', -0.25)]
    served.vendor.answer(whole(completion('', { choices: [choice(0, '😀 b', content)] })))
    const answer = await create({ logprobs: 1 })
    expect(sent()).toMatchObject({ logprobs: true, top_logprobs: 1 })
    expect(answer.choices[0]?.logprobs).toEqual({
      tokens: ['😀', ' b'],
      token_logprobs: [-0.5, -0.25],
      top_logprobs: [{ x: -1, '😀': -0.5 }, { ' b': -0.25 }],
      text_offset: [0, 1],
    })
  })

  it('requests log probabilities without alternatives for "logprobs": 0', async () => {
    await create({ logprobs: 0 })
    expect(sent().logprobs).toBe(true)
    expect(sent().top_logprobs).toBeUndefined()
  })

  it('treats null as absent', async () => {
    await create({ suffix: null, best_of: null, echo: null, logprobs: null, max_tokens: null, stop: null, n: null })
    expect(sent()).toMatchObject({ max_tokens: 16, messages: [{ role: 'user', content: 'Once' }] })
  })

  it.each([
    ['a prompt of tokens', { prompt: [1, 2] }, 'unsupported_value', 'prompt'],
    ['prompts of tokens', { prompt: [[1, 2], [3]] }, 'unsupported_value', 'prompt'],
    ['no prompt', { prompt: null }, 'missing_required_parameter', 'prompt'],
    ['an empty list of prompts', { prompt: [] }, 'invalid_value', 'prompt'],
    ['21 prompts', { prompt: Array(21).fill('a') }, 'invalid_value', 'prompt'],
    ['max_tokens 0', { max_tokens: 0 }, 'invalid_value', 'max_tokens'],
    ['best_of below n', { best_of: 1, n: 2 }, 'invalid_value', 'best_of'],
    ['best_of above n in a stream', { best_of: 2, stream: true }, 'invalid_value', 'best_of'],
    ['best_of 21', { best_of: 21 }, 'invalid_value', 'best_of'],
    ['logprobs 6', { logprobs: 6 }, 'invalid_value', 'logprobs'],
    ['logprobs as in chat completions', { logprobs: true }, 'invalid_type', 'logprobs'],
    ['echo with logprobs', { echo: true, logprobs: 1 }, 'unsupported_parameter', 'logprobs'],
    ['messages', { messages: [] }, 'unsupported_parameter', 'messages'],
    ['tools', { tools: [] }, 'unsupported_parameter', 'tools'],
    ['five stop sequences', { stop: ['1', '2', '3', '4', '5'] }, 'invalid_value', 'stop'],
  ])('refuses %s', async (_, fields, code, param) => {
    expect(await refusal(fields)).toEqual({ status: 400, code, param })
    expect(served.vendor.requests).toEqual([])
  })

  it('accepts 20 prompts, best_of 20 and 5 log probabilities', async () => {
    served.vendor.otherwise(whole(completion('Hello')))
    expect((await create({ prompt: Array(20).fill('a') })).choices).toHaveLength(20)
    await create({ best_of: 20, logprobs: 5 })
    expect(sent(20)).toMatchObject({ n: 20, top_logprobs: 5 })
  })

  it('names the field of this API in errors about the model', async () => {
    expect(await refusal({ model: 'v/narrow', n: 2 })).toMatchObject({ code: 'unsupported_parameter', param: 'n' })
    const directive = '@sandbox nonsense=1'
    expect(await refusal({ model: 'sandbox/general', prompt: directive })).toMatchObject({ param: 'prompt' })
    expect(await refusal({ model: 'sandbox/general', prompt: ['a', directive] })).toMatchObject({ param: 'prompt[1]' })
    expect(await refusal({ model: 'nobody/knows' })).toMatchObject({ status: 404, code: 'model_not_found' })
  })

  it('ends the other prompts when one fails, and reports its error', async () => {
    served.vendor.answer(
      failure(429, { error: { message: 'Slow down', type: 'requests', code: 'rate_limit' } }),
      hang(),
    )
    const thrown = await create({ prompt: ['a', 'b'] }).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(OpenAI.RateLimitError)
    await served.vendor.requests.find(({ connection }) => connection > 0)
    await Promise.race(served.vendor.requests.map(({ aborted }) => aborted))
  })

  it.each(['answered', 'open'])(
    'a prompt that fails says nothing about the targets of others that are %s',
    async (state) => {
      const prompts = ['bad', 'a', 'b', 'c', 'd', 'e']
      const vendor = startVendor()
      const isBad = ({ body }: { body: string }) => body.includes('"bad"')
      vendor.otherwise(async (wire) => {
        if (!isBad(wire.request)) return await (state === 'open' ? hang() : whole(completion('Hello')))(wire)
        await vendor.request(prompts.length)
        for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve)) // the others are read
        await failure(500)(wire)
      })
      await using gateway = await startGateway({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
      const failed = await gateway.call('/v1/completions', { json: { model: 'v/m', prompt: prompts } })
      expect(failed.status).toBe(502)
      if (state === 'open') await Promise.all(vendor.requests.map((one) => (isBad(one) ? undefined : one.aborted)))
      expect(gateway.logged()).not.toContain('target ejected')
      expect(vendor.requests).toHaveLength(prompts.length)
      await vendor.stop()
    },
  )

  it('refuses a token that may not use the model', async () => {
    const narrow = await served.tokenFor(['v/narrow'])
    const other = new OpenAI({ baseURL: served.url, apiKey: narrow, maxRetries: 0, logLevel: 'off' })
    const thrown = await other.completions.create({ model: 'v/m', prompt: 'a' }).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(OpenAI.PermissionDeniedError)
  })

  it('names the path with /v1 to a client that leaves it out', async () => {
    const response = await served.gateway.call('/completions', { json: {} })
    expect(response.status).toBe(404)
    expect(await response.text()).toContain('/v1/completions')
  })
})

describe('POST /v1/completions as a stream', () => {
  it('has one chunk for each text, and the finish reason in the last', async () => {
    served.vendor.answer(stream(chunks(' upon', ' a time')))
    const list = await all(await streamOf())
    expect(list.map(({ choices }) => choices)).toEqual([
      [{ index: 0, text: ' upon', logprobs: null, finish_reason: null }],
      [{ index: 0, text: ' a time', logprobs: null, finish_reason: null }],
      [{ index: 0, text: '', logprobs: null, finish_reason: 'stop' }],
    ] as never)
    expect(new Set(list.map(({ id, object, model }) => `${id.slice(0, 5)} ${object} ${model}`))).toEqual(
      new Set(['cmpl- text_completion v/m']),
    )
    expect(list.some((one) => 'usage' in one)).toBe(false)
  })

  it('ends with data: [DONE]', async () => {
    const response = await served.gateway.call('/v1/completions', {
      json: { model: 'v/m', prompt: 'a', stream: true },
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('includes the usage on request, in a last chunk without choices', async () => {
    const list = await all(await streamOf({ stream_options: { include_usage: true } }))
    expect(list.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
    expect(list.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
  })

  it('merges the streams of several prompts, with echo and the usage of all', async () => {
    served.vendor.otherwise((wire) => {
      const [{ content = '' } = {}] = wire.request.json().messages as { content?: string }[]
      return stream(chunks(`${content}1`, `${content}2`))(wire)
    })
    const list = await all(
      await streamOf({ prompt: ['a', 'b', 'c'], echo: true, stream_options: { include_usage: true } }),
    )
    expect(textsOf(list)).toEqual(['aa1a2', 'bb1b2', 'cc1c2'])
    expect(list.at(-1)?.usage?.total_tokens).toBe(36)
    const ends = list.flatMap(({ choices }) => choices).filter(({ finish_reason }) => finish_reason)
    expect(ends.map(({ index }) => index).sort()).toEqual([0, 1, 2])
    served.vendor.otherwise(whole(completion('Hello')))
  })

  it('counts the offsets of log probabilities through the stream', async () => {
    const piece = (text: string) => ({
      ...chunk({}),
      choices: [{ index: 0, delta: { content: text }, logprobs: { content: [token(text, -1)] }, finish_reason: null }],
    })
    served.vendor.answer(stream([piece('ab'), piece('cd'), chunk({}, 'stop')]))
    const list = await all(await streamOf({ logprobs: 0 }))
    expect(list.flatMap(({ choices }) => choices[0]?.logprobs?.text_offset ?? [])).toEqual([0, 2])
  })

  it('ends with an error event when one prompt breaks off, and aborts the others', async () => {
    const open = stream([chunk({ role: 'assistant', content: '' }), chunk({ content: 'x' }), new Promise(() => {})])
    served.vendor.answer(open, stream(chunks('y', 'z'), { cutAfter: 2 }))
    const read = async () => all(await streamOf({ prompt: ['a', 'b'] }))
    const thrown = await read().catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(OpenAI.APIError)
    expect((thrown as { code?: string }).code).toBe('upstream_cut')
    await Promise.race(served.vendor.requests.map(({ aborted }) => aborted))
  })

  it('aborts the request to the provider when the client leaves', async () => {
    served.vendor.answer(stream([chunk({ content: 'x' }), new Promise(() => {})]))
    const response = await streamOf()
    for await (const _ of response) break
    await served.vendor.requests[0]?.aborted
  })
})
