/** The semantic cache through a whole gateway: which requests get the response to a similar one. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelCache } from '../src/config/schema/cache-schema.ts'
import { angle, degreesIn } from './kit/angles.ts'
import type { CallOptions, TestGateway } from './kit/gateway.ts'
import { startGateway } from './kit/gateway.ts'
import { type Answer, chunk, completion, failure, hang, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** The vector of a text is the angle that it names, in degrees: the similarity of two is the cosine of the difference. */
const angles: Answer = (wire) => {
  const { input } = wire.request.json() as { input: string | string[] }
  const data = [input].flat().map((text, index) => {
    const radians = (degreesIn(text) * Math.PI) / 180
    return { index, embedding: [3 * Math.cos(radians), 3 * Math.sin(radians)] }
  })
  return whole({ data, usage: { prompt_tokens: 7 } })(wire)
}

type Semantic = NonNullable<ModelCache['semantic']>
type Started = { gateway: TestGateway; chat: Vendor; vec: Vendor }

async function start({ cache = {}, ...semantic }: Partial<Semantic> & { cache?: ModelCache } = {}): Promise<Started> {
  const [chat, vec] = [startVendor(), startVendor()]
  closing.push(chat.stop, vec.stop)
  vec.otherwise(angles)
  const gateway = await startGateway({
    providers: { chat: { base_url: chat.url, key: 'k' }, vec: { base_url: vec.url, key: 'k' } },
    models: {
      'house/fast': {
        targets: [{ provider: 'chat', model: 'fast' }],
        cache: { semantic: { embedding_model: 'vec/embed', ...semantic }, ...cache },
      },
      'vec/embed': { families: ['embeddings'] },
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return { gateway, chat, vec }
}

type Messages = { role: string; content: unknown }[]
const ask = (content: unknown, more: object = {}) => ({
  model: 'house/fast',
  messages: [{ role: 'user', content }],
  temperature: 0,
  ...more,
})
/** What the cache did, and the similarity. */
const cacheOf = ({ headers }: Response) =>
  [headers.get('x-gatehouse-cache'), headers.get('x-gatehouse-cache-similarity')].filter((value) => value !== null)

async function outcome({ gateway }: Started, body: object, options?: CallOptions): Promise<string[]> {
  const response = await gateway.chat(body, options)
  expect(response.status).toBe(200)
  await response.text()
  return cacheOf(response)
}
const calls = (vendor: Vendor) => vendor.requests.filter(({ method }) => method === 'POST').length

describe('a similar request', () => {
  it('gets the response, with its similarity and under an id of its own', async () => {
    const started = await start()
    const first = await (await started.gateway.chat(ask(angle(10)))).json()
    started.gateway.clock.advance(3_000)
    const response = await started.gateway.chat(ask(`at ${angle(20)}`))
    const answer = await response.json()
    expect(cacheOf(response)).toEqual(['hit', '0.98'])
    expect(response.headers.get('age')).toBe('3')
    expect(answer.id).not.toBe(first.id)
    expect({ ...answer, id: '' }).toEqual({ ...first, id: '' })
    expect([calls(started.chat), calls(started.vec)]).toEqual([1, 2])
    const [, line = ''] = started.gateway.logged().match(/.*"event":"request".*/g) ?? []
    expect(JSON.parse(line)).toMatchObject({ cache: 'hit', input_tokens: 0 })
    expect(JSON.parse(line).cache_similarity).toBeCloseTo(0.985, 3)
  })

  it.each([
    [{}, 18, ['hit', '0.95']],
    [{}, 19, ['miss']],
    [{ threshold: 0.5 }, 59, ['hit', '0.51']],
    [{ threshold: 0.5 }, 61, ['miss']],
    [{ threshold: 1 }, 1, ['miss']],
    [{ threshold: 1 }, 0, ['hit', '1.00']],
  ])('with %p is one at an angle of %p degrees: %p', async (semantic, degrees, expected) => {
    const started = await start(semantic)
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
    expect(await outcome(started, ask(`other words, ${angle(degrees)}`))).toEqual(expected)
  })

  it('is not embedded where the same request was cached', async () => {
    const started = await start()
    const all = [ask(angle(0)), ask(angle(0)), ask(angle(90))]
    const found: string[][] = []
    for (const body of all) found.push(await outcome(started, body))
    expect(found).toEqual([['miss'], ['hit'], ['miss']])
    expect(calls(started.vec)).toBe(2)
  })

  it('gets a stream replayed, and no stream gets a whole response', async () => {
    const started = await start()
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
    started.chat.answer(
      stream([chunk({ role: 'assistant', content: 'Hel' }), chunk({ content: 'lo' }), chunk({}, 'stop')]),
    )
    const first = await started.gateway.chat(ask(angle(1), { stream: true }))
    const text = await first.text()
    const second = await started.gateway.chat(ask(angle(2), { stream: true }))
    const replayed = await second.text()
    expect([cacheOf(first), cacheOf(second)]).toEqual([['miss'], ['hit', '0.99']])
    const withoutIds = (events: string) => events.replaceAll(/"id":"[^"]+"/g, '"id":""')
    expect(withoutIds(replayed)).toBe(withoutIds(text))
    expect(replayed).toContain('"lo"')
  })

  it('is one where a header asks for it, and not where the request is not deterministic', async () => {
    const started = await start()
    const open = (content: string) => ask(content, { temperature: 0.7 })
    expect(await outcome(started, open(angle(0)))).toEqual(['bypass'])
    expect(calls(started.vec)).toBe(0)
    const on = { headers: { 'x-gatehouse-cache': 'on' } }
    expect(await outcome(started, open(angle(0)), on)).toEqual(['miss'])
    expect(await outcome(started, open(angle(1)), on)).toEqual(['hit', '0.99'])
    const refresh = { headers: { 'x-gatehouse-cache': 'refresh' } }
    expect(await outcome(started, open(angle(2)), refresh)).toEqual(['miss'])
    expect(calls(started.vec)).toBe(2)
  })
})

const [ONE, TWO] = [angle(1), angle(2)]

describe('only the last messages of the user may differ', () => {
  const talk = (...contents: string[]): Messages =>
    contents.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content }))
  const with0 = (messages: Messages, more: object = {}) => ({ model: 'house/fast', messages, temperature: 0, ...more })
  const system = (content: string, ...rest: Messages) => [{ role: 'system', content }, ...rest]
  const tool = (name: string) => [{ type: 'function', function: { name, parameters: { type: 'object' } } }]

  it.each<[string, object, object, 'hit' | 'miss']>([
    ['the same conversation', with0(talk('a', 'b', ONE)), with0(talk('a', 'b', TWO)), 'hit'],
    ['another earlier question', with0(talk('a', 'b', ONE)), with0(talk('c', 'b', TWO)), 'miss'],
    ['an earlier question with the same text', with0(talk(ONE, 'b', ONE)), with0(talk(TWO, 'b', TWO)), 'miss'],
    ['another earlier response', with0(talk('a', 'b', ONE)), with0(talk('a', 'c', TWO)), 'miss'],
    ['the same system prompt', with0(system('s', ...talk(ONE))), with0(system('s', ...talk(TWO))), 'hit'],
    ['another system prompt', with0(system('s', ...talk(ONE))), with0(system('t', ...talk(TWO))), 'miss'],
    [
      'the system prompt with the same text',
      with0(system(ONE, ...talk(ONE))),
      with0(system(TWO, ...talk(TWO))),
      'miss',
    ],
    ['another parameter', ask(ONE), ask(TWO, { max_tokens: 5 }), 'miss'],
    ['a parameter with the same text', ask(ONE, { stop: ONE }), ask(TWO, { stop: TWO }), 'miss'],
    ['the same tools', ask(ONE, { tools: tool('t') }), ask(TWO, { tools: tool('t') }), 'hit'],
    ['other tools', ask(ONE, { tools: tool('t') }), ask(TWO, { tools: tool('u') }), 'miss'],
    ['parts of text', ask([{ type: 'text', text: ONE }]), ask([{ type: 'text', text: TWO }]), 'hit'],
    ['two messages', with0([...talk(ONE), ...talk('x')]), with0([...talk(TWO), ...talk('y')]), 'hit'],
    ['another number of messages', with0([...talk(ONE), ...talk('x')]), with0(talk(TWO)), 'miss'],
    ['another name of the user', ask(ONE), with0([{ role: 'user', content: TWO, name: 'b' } as never]), 'miss'],
  ])('%s', async (_, one, other, expected) => {
    const started = await start()
    expect(await outcome(started, one)).toEqual(['miss'])
    expect((await outcome(started, other))[0]).toBe(expected)
    expect(calls(started.vec)).toBe(2)
  })

  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const call = { id: 'c', type: 'function', function: { name: 't', arguments: '{}' } }
  it.each([
    ['an image', ask([{ type: 'text', text: '1' }, image])],
    ['an image in an earlier message', with0([{ role: 'user', content: [image] }, ...talk('1')])],
    [
      'the result of a tool',
      with0(
        [
          ...talk('a'),
          { role: 'assistant', content: null, tool_calls: [call] } as never,
          { role: 'tool', content: 'r', tool_call_id: 'c' } as never,
        ],
        { tools: tool('t') },
      ),
    ],
    ['the beginning of the response', with0(talk('1', 'The'))],
    ['a very long text', ask(`1${'x'.repeat(16_384)}`)],
  ])('a request with %s is not looked up', async (_, body) => {
    const started = await start()
    for (const expected of ['miss', 'hit']) expect(await outcome(started, body)).toEqual([expected])
    expect(calls(started.vec)).toBe(0)
  })

  it('a text at the bound is', async () => {
    const started = await start()
    expect(await outcome(started, ask(`1${'x'.repeat(16_383)}`))).toEqual(['miss'])
    expect(calls(started.vec)).toBe(1)
  })
})

describe('numbers in the last messages of the user', () => {
  it.each<[string, string, 'hit' | 'miss']>([
    ['sales in 2024', 'sales in 2025', 'miss'],
    ['sales in 2024', 'the sales of 2024', 'hit'],
    ['from 3 to 7', 'from 7 to 3', 'miss'],
    ['1.5 litres', '15 litres', 'miss'],
    ['at 5 degrees', 'at -5 degrees', 'miss'],
    ['room 7', 'the room', 'miss'],
    ['the room', 'room 7', 'miss'],
    ['۳ books', '۴ books', 'miss'],
    ['version 2.', 'of version 2', 'hit'],
  ])('%p and %p: %s', async (one, other, expected) => {
    const started = await start()
    expect(await outcome(started, ask(one))).toEqual(['miss'])
    expect((await outcome(started, ask(other)))[0]).toBe(expected)
  })
})

/** Lets what runs in the background end. */
const flushed = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next))
}

describe('the caller', () => {
  const issue = async ({ gateway }: Started, settings: object): Promise<{ id: string; options: CallOptions }> => {
    const { secret, token } = await gateway.instance.tokens.issue({ name: 'other', ...settings })
    return { id: token.token_id, options: { headers: { authorization: `Bearer ${secret}` } } }
  }

  it.each([
    ['token', ['miss']],
    ['all', ['hit', '0.99']],
  ] as const)('with scope %s gets of another one: %p', async (scope, expected) => {
    const started = await start({ cache: { scope } })
    const { options } = await issue(started, {})
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
    expect(await outcome(started, ask(angle(1)), options)).toEqual([...expected])
  })

  it('of another project gets nothing of what a project has cached, whatever it has sent before', async () => {
    const started = await start({ cache: { scope: 'project' } })
    const { projects } = started.gateway.instance
    const [one, other] = await Promise.all(['one', 'other'].map((name) => projects.create({ name })))
    const of = async (project: { project_id: string } | undefined) =>
      (await issue(started, { project_id: project?.project_id })).options
    const [attacker, colleague, victim] = [await of(one), await of(one), await of(other)]
    expect(await outcome(started, ask(angle(0)), attacker)).toEqual(['miss'])
    expect(await outcome(started, ask(angle(1)), colleague)).toEqual(['hit', '0.99'])
    expect(await outcome(started, ask(angle(1)), victim)).toEqual(['miss'])
    // A token without a project shares with no project, not even by a name of its own.
    const named = (await issue(started, { name: one?.project_id })).options
    expect(await outcome(started, ask(angle(1)), named)).toEqual(['miss'])
  })

  it.each(['token', 'all'] as const)('with scope %s gets nothing of another end user', async (scope) => {
    const started = await start({ cache: { scope } })
    const as = (user: string): CallOptions => ({ headers: { 'x-gatehouse-user': user } })
    expect(await outcome(started, ask(angle(0)), as('ann'))).toEqual(['miss'])
    expect(await outcome(started, ask(angle(1)), as('bob'))).toEqual(['miss'])
    expect(await outcome(started, ask(angle(2)))).toEqual(['miss'])
    expect(await outcome(started, ask(angle(3)), as('ann'))).toEqual(['hit', '0.99'])
  })

  it('is charged for the embedding', async () => {
    const started = await start()
    const { id, options } = await issue(started, {})
    for (const content of [angle(0), angle(1)]) await outcome(started, ask(content), options)
    started.gateway.clock.advance(60_000)
    await flushed()
    const used = await started.gateway.instance.usage({ token_id: id, limit: 10 })
    expect(used.map(({ model, requests, input_tokens }) => [model, requests, input_tokens])).toEqual([
      ['house/fast', 2, 9],
      ['vec/embed', 2, 14],
    ])
  })

  it.each([
    ['model', { models: ['house/*'] }],
    ['family', { families: ['chatcompat' as const] }],
  ])('who may not use the %s of embeddings gets exact hits only', async (_, settings) => {
    const started = await start({ cache: { scope: 'all' } })
    const { options } = await issue(started, settings)
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
    expect(await outcome(started, ask(angle(1)), options)).toEqual(['miss'])
    expect(await outcome(started, ask(angle(1)), options)).toEqual(['hit'])
    expect(calls(started.vec)).toBe(1)
    expect(started.gateway.logged()).not.toContain('text not embedded')
  })
})

describe('an embedding that fails', () => {
  it('is a miss, which is cached for equal requests', async () => {
    const started = await start()
    started.vec.answer(failure(500, { message: 'broken' }))
    started.vec.otherwise(failure(400, { message: 'broken' }))
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
    expect(await outcome(started, ask(angle(0)))).toEqual(['hit'])
    expect(started.gateway.logged()).toContain('"event":"text not embedded"')
  })

  it('is a miss when it takes longer than its time-out, and not before', async () => {
    const started = await start()
    started.vec.otherwise(hang())
    const waiting = outcome(started, ask(angle(0)))
    const request = await started.vec.request(1)
    started.gateway.clock.advance(499)
    expect(calls(started.chat)).toBe(0)
    started.gateway.clock.advance(1)
    expect(await waiting).toEqual(['miss'])
    await request.aborted
    expect(calls(started.chat)).toBe(1)
  })

  it('ends with its client', async () => {
    const started = await start()
    started.vec.otherwise(hang())
    const control = new AbortController()
    const waiting = started.gateway.chat(ask(angle(0)), { signal: control.signal }).catch(() => undefined)
    const request = await started.vec.request(1)
    control.abort()
    await request.aborted
    await waiting
    expect(calls(started.chat)).toBe(0)
    started.vec.otherwise(angles)
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
  })
})

describe('the other APIs of chat', () => {
  it.each<[string, string, (text: string) => object]>([
    ['Messages', '/v1/messages', (content) => ({ ...ask(content), max_tokens: 9 })],
    ['Responses', '/v1/responses', (input) => ({ model: 'house/fast', input, temperature: 0, store: false })],
    [
      'contentgen',
      '/v1beta/models/house/fast:generateContent',
      (text) => ({ contents: [{ role: 'user', parts: [{ text }] }], generationConfig: { temperature: 0 } }),
    ],
  ])('%s has similar requests too, and none of another API', async (_, path, bodyOf) => {
    const started = await start()
    expect(await outcome(started, ask(angle(0)))).toEqual(['miss'])
    const found: string[][] = []
    for (const text of [angle(1), angle(2)]) {
      const response = await started.gateway.call(path, { json: bodyOf(text) })
      expect(response.status).toBe(200)
      await response.text()
      found.push(cacheOf(response))
    }
    expect(found).toEqual([['miss'], ['hit', '0.99']])
  })
})

it('shares the answer of one call among similar requests after each other, also of a completion of another text', async () => {
  const started = await start()
  started.chat.answer(whole(completion('one')), whole(completion('two')))
  const contents: string[] = []
  for (const degrees of [0, 90, 5, 85]) {
    const response = await started.gateway.chat(ask(angle(degrees)))
    contents.push((await response.json()).choices[0].message.content)
  }
  expect(contents).toEqual(['one', 'two', 'one', 'two'])
})
