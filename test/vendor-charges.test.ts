/**
 * Reconciles the ledger with what vendors have counted themselves, for every family and every way in which a call can end:
 * the vendor's count is at most the ledger's cost, and where they differ, an entry is marked as estimated.
 */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_LEDGER } from '../src/config/config.ts'
import type { ModelConfig } from '../src/config/schema/schema.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { TINY_PNG_BASE64 } from './kit/tiny-files.ts'
import {
  type Answer,
  chunk,
  chunks,
  completion,
  failure,
  startVendor,
  stream,
  type Vendor,
  whole,
} from './kit/vendor.ts'

const NANO = 1_000_000_000
const HEDGE_AFTER = 40
/** 1 USD a token, an image and a search. */
const PRICES = { input: 1_000_000, output: 1_000_000 }

type Family = {
  path: string
  /** Without its model. */
  body: Record<string, unknown>
  /** What the vendor answers with, and what it counts for that, in USD. */
  answer: unknown
  count: number
  /** Fewer: what is held is rounded up. */
  most: number
  model?: ModelConfig
  isStream?: true
  /** Each request is charged: after a failure that is in doubt, no other target is asked. */
  isOrder?: true
}

const messages = [{ role: 'user', content: 'Hi' }]
const CHAT = { answer: completion('Hello'), count: 12, most: 12 }
const TEXT = { most: 2 }
const image = { b64_json: TINY_PNG_BASE64 }

const FAMILIES: Record<string, Family> = {
  'chat completions': { ...CHAT, path: '/v1/chat/completions', body: { messages, max_tokens: 20 } },
  'chat completions, streamed': {
    ...CHAT,
    path: '/v1/chat/completions',
    body: { messages, max_tokens: 20, stream: true },
    isStream: true,
  },
  responses: { ...CHAT, path: '/v1/responses', body: { input: 'Hi', max_output_tokens: 20, store: false } },
  messages: { ...CHAT, path: '/v1/messages', body: { messages, max_tokens: 20 } },
  contentgen: {
    ...CHAT,
    path: '/v1beta/models/MODEL:generateContent',
    body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 20 } },
  },
  'text completions': { ...CHAT, path: '/v1/completions', body: { prompt: 'Hi', max_tokens: 20 } },
  embeddings: {
    ...TEXT,
    path: '/v1/embeddings',
    body: { input: 'Hi' },
    answer: { data: [{ index: 0, embedding: [1, 2] }], usage: { prompt_tokens: 2, total_tokens: 2 } },
    count: 2,
    model: { families: ['embeddings'] },
  },
  rerank: {
    ...TEXT,
    path: '/v1/rerank',
    body: { query: 'Hi', documents: ['a', 'b'] },
    answer: { results: [0, 1].map((index) => ({ index, relevance_score: 0.5 })), usage: { total_tokens: 4 } },
    count: 4,
    model: { families: ['rerank'] },
  },
  moderations: {
    ...TEXT,
    path: '/v1/moderations',
    body: { input: 'Hi' },
    answer: {
      results: [{ flagged: false, categories: {}, category_scores: {} }],
      usage: { prompt_tokens: 2, total_tokens: 2 },
    },
    count: 2,
    model: { families: ['moderations'] },
  },
  images: {
    path: '/v1/images/generations',
    body: { prompt: 'A kite', n: 2 },
    answer: { data: [image, image] },
    count: 2,
    most: 2,
    model: { families: ['image-generation'], prices: { image: 1 } },
    isOrder: true,
  },
}

let directory: string
let vendors: { first: Vendor; second: Vendor }
let gateway: TestGateway
/** What the vendors have counted, in USD. */
let counted = 0
/** How many responses of vendors have begun to arrive. */
let responses = 0
const { fetch: send } = globalThis
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-vendor-charges-'))
  vendors = { first: startVendor(), second: startVendor() }
  counted = 0
  const counting = (...request: Parameters<typeof send>) =>
    send(...request).finally(() => {
      responses++
    })
  globalThis.fetch = Object.assign(counting, { preconnect: send.preconnect })
})
afterEach(async () => {
  globalThis.fetch = send
  await gateway[Symbol.asyncDispose]()
  await Promise.all([vendors.first.stop(), vendors.second.stop()])
  rmSync(directory, { recursive: true, force: true })
})

const settled = async (turns = 30) => {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

type Row = {
  kind: string
  provider: string
  model: string
  amount: number | null
  cost: number | null
  estimated: number
}

function rowsOf<T>(statement: string): T[] {
  const database = new Database(join(directory, 'gatehouse.db'), { readonly: true })
  try {
    return database.query<T, []>(statement).all()
  } finally {
    database.close()
  }
}

/** The entries of the ledger, after the gateway has written all of them. */
async function entries(): Promise<Row[]> {
  await gateway.instance.drain({ deadline_ms: 60_000 })
  return rowsOf<Row>('select kind, provider, model, amount, cost, estimated from ledger_entries order by entry_id')
}

const sum = (rows: Row[], of: 'amount' | 'cost') => rows.reduce((total, row) => total + (row[of] ?? 0), 0) / NANO

/** The ledger has at least what the vendors have counted, and says so where it is more. */
async function reconciled(): Promise<Row[]> {
  const rows = await entries()
  expect(rows.filter(({ kind }) => kind === 'call')).toHaveLength(1)
  const cost = sum(rows, 'cost')
  expect(cost).toBeGreaterThanOrEqual(counted)
  const isMarked = rows.some(({ estimated }) => estimated > 0)
  if (cost !== counted) expect(isMarked).toBe(true)
  return rows
}

async function setUp(
  { model, path }: Family,
  more: Pick<ModelConfig, 'routing' | 'cache'> & { ledger?: object; quirks?: { passthrough: boolean } } = {},
) {
  const kind = path === '/v1/rerank' ? 'rerank-compat' : 'chatcompat'
  const { ledger, quirks, ...settings } = more
  const own = { key: 'k', ...(quirks && { quirks }) }
  const shared = { prices: PRICES, ...model, ...settings }
  const target = (provider: string, priority: number) => ({ provider, model: 'm', priority })
  gateway = await startGateway(
    {
      data_dir: directory,
      ledger: { ...DEFAULT_LEDGER, ...ledger },
      providers: {
        v: { kind, base_url: vendors.first.url, ...own },
        w: { kind, base_url: vendors.second.url, ...own },
      },
      models: {
        'v/one': { ...shared, targets: [target('v', 0)] },
        'v/two': { ...shared, targets: [target('v', 0), target('w', 1)] },
        'v/fall': { ...shared, targets: [target('v', 0)], fallbacks: { unavailable: ['w/one'] } },
        'w/one': { ...shared, targets: [target('w', 0)] },
      },
    },
    { store_url: `sqlite:${join(directory, 'gatehouse.db')}` },
  )
}

type Call = { status: number; text: string }

async function call({ path, body }: Family, model = 'v/one', signal?: AbortSignal): Promise<Call> {
  const json = path.includes('MODEL') ? body : { model, ...body }
  const headers = { 'x-goog-api-key': gateway.token }
  const response = await gateway.call(path.replace('MODEL', model), { json, headers, ...(signal ? { signal } : {}) })
  return { status: response.status, text: await response.text().catch(() => '') }
}

/** The vendor does the work, counts it, and then answers like this. */
const works =
  ({ count }: Family, then: Answer): Answer =>
  (wire) => {
    counted += count
    return then(wire)
  }

const answerOf = ({ answer, isStream }: Family): Answer => (isStream ? stream(chunks('Hello'), {}) : whole(answer))

/** The head and the beginning of the answer; what follows is the caller's. */
const begins =
  ({ answer }: Family, then: (rest: string, wire: Parameters<Answer>[0]) => Promise<void> | void): Answer =>
  async (wire) => {
    const text = JSON.stringify(answer)
    await wire.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text.slice(0, 5)}`,
    )
    await then(text.slice(5), wire)
  }

/** A call whose client leaves when the head and the beginning of the answer have arrived. */
async function leavesDuring(family: Family, then: (rest: string, wire: Parameters<Answer>[0]) => Promise<void> | void) {
  const leaving = new AbortController()
  const begin = Promise.withResolvers<void>()
  vendors.first.answer(works(family, (wire) => begin.promise.then(() => begins(family, then)(wire))))
  const left = call(family, 'v/one', leaving.signal)
  await vendors.first.request(1)
  const before = responses
  begin.resolve()
  while (responses === before) await settled(1)
  await settled()
  leaving.abort()
  await settled()
  return { left }
}

const hangs: Answer = (wire) => wire.aborted
const advance = async (seconds: number) => {
  gateway.clock.advance(seconds * 1000)
  await settled()
}

describe.each(Object.entries(FAMILIES))('%s', (_, family) => {
  const isWhole = family.isStream !== true

  it('is charged what the vendor counts where it ends as usual', async () => {
    await setUp(family)
    const usage = family.isStream ? { stream_options: { include_usage: true } } : {}
    vendors.first.answer(works(family, answerOf(family)))
    const { status } = await call({ ...family, body: { ...family.body, ...usage } })
    expect(status).toBe(200)
    const rows = await reconciled()
    expect(rows).toMatchObject([{ cost: family.count * NANO, estimated: 0 }])
  })

  it('is charged the most that it can have cost where its client leaves before the vendor answers', async () => {
    await setUp(family)
    const leaving = new AbortController()
    vendors.first.answer(works(family, hangs))
    const left = call(family, 'v/one', leaving.signal)
    await vendors.first.request(1)
    leaving.abort()
    await left
    const [own] = await reconciled()
    expect(own?.amount).toBeGreaterThanOrEqual(family.most * NANO)
  })

  if (isWhole)
    it('is charged what the vendor counts where its client leaves while the answer arrives', async () => {
      await setUp(family)
      const hasLeft = Promise.withResolvers<void>()
      const { left } = await leavesDuring(family, (rest, wire) => hasLeft.promise.then(() => wire.write(rest)))
      hasLeft.resolve()
      expect((await left).status).toBe(499)
      const amount = family.count * NANO
      expect(await reconciled()).toMatchObject([{ amount, cost: amount, estimated: 0 }])
    })

  if (isWhole)
    it('is charged the most where the rest of the answer does not arrive in time', async () => {
      await setUp(family)
      const { left } = await leavesDuring(family, (_, wire) => wire.aborted)
      await advance(29)
      expect(vendors.first.connections()).toBe(1)
      await advance(1)
      expect((await left).status).toBe(499)
      const [own] = await reconciled()
      expect(own).toMatchObject({ estimated: 1 })
      expect(own?.amount).toBeGreaterThanOrEqual(family.most * NANO)
    })

  it('is charged the most where the vendor does not answer in time', async () => {
    await setUp(family)
    vendors.first.answer(works(family, hangs))
    const timedOut = call(family)
    await vendors.first.request(1)
    await advance(600)
    expect((await timedOut).status).toBe(family.isStream ? 200 : 504) // the stream has begun with comments
    const [own] = await reconciled()
    expect(own?.amount).toBeGreaterThanOrEqual(family.most * NANO)
  })

  it.each([
    ['is cut', (of: Family) => begins(of, (_, wire) => wire.close())],
    ['is lost', () => (wire: Parameters<Answer>[0]) => wire.reset()],
    ['is a failure after the work', () => failure(500)],
    ['cannot be read', () => whole('no JSON')],
  ] as const)('has what may have been charged where the answer %s', async (_, answer) => {
    await setUp(family)
    vendors.first.answer(works(family, answer(family)))
    expect((await call(family)).status).toBeGreaterThanOrEqual(500)
    const rows = await reconciled()
    expect(rows.some(({ estimated }) => estimated > 0)).toBe(true)
    if (family.isOrder) expect(sum(rows, 'amount')).toBeGreaterThanOrEqual(family.count)
  })

  it('costs nothing where the vendor refuses it', async () => {
    await setUp(family)
    for (const status of [400, 401, 429]) vendors.first.answer(failure(status))
    for (let refused = 0; refused < 3; refused++) expect((await call(family)).status).toBeGreaterThanOrEqual(400)
    const rows = await entries()
    expect([sum(rows, 'cost'), sum(rows, 'amount')]).toEqual([0, 0])
  })

  it.each([
    ['target', 'v/two'],
    ['model', 'v/fall'],
  ])('costs both attempts, and charges the caller once, where it is given up for another %s', async (_, model) => {
    await setUp(family)
    vendors.first.answer(works(family, failure(500)))
    vendors.second.answer(works(family, answerOf(family)))
    const { status } = await call(family, model)
    const rows = await reconciled()
    // An order that may have been accepted is not sent to another one.
    expect(rows.map(({ provider }) => provider)).toEqual(family.isOrder ? ['v'] : ['w', 'v'])
    expect(status).toBe(family.isOrder ? 502 : 200)
    if (family.isOrder) return
    expect(rows).toMatchObject([
      { kind: 'call', amount: family.count * NANO, estimated: 0 },
      { kind: 'lost_attempt', amount: 0, estimated: 1, model: model === 'v/fall' ? 'v/fall' : 'v/two' },
    ])
  })

  it('would be recorded at least at what the vendor counts if the gateway were killed', async () => {
    await setUp(family, { ledger: { durable: true } })
    let open: { cost: number | null; estimated: number }[] = []
    vendors.first.answer((wire) => {
      counted += family.count
      open = rowsOf<{ entry: string }>('select entry from open_calls').map(({ entry }) => JSON.parse(entry))
      return answerOf(family)(wire)
    })
    const running = call(family)
    const isOver = running.then(() => true)
    while (!(await Promise.race([isOver, settled(1).then(() => false)]))) gateway.clock.advance(0)
    expect((await running).status).toBe(200)
    expect(open).toMatchObject([{ estimated: 1 }])
    expect(open[0]?.cost).toBeGreaterThanOrEqual(counted * NANO)
  })
})

describe('a hedged call', () => {
  it.each([
    ['whole', 'chat completions'],
    ['streamed', 'chat completions, streamed'],
  ])('costs both attempts, and charges the caller once (%s)', async (_, name) => {
    const family = FAMILIES[name] as Family
    await setUp(family, { routing: { hedge: true } })
    vendors.first.otherwise(works(family, answerOf(family)))
    // So many calls show how long the target usually takes, and save up a hedge.
    for (let earlier = 0; earlier < HEDGE_AFTER; earlier++) expect((await call(family, 'v/two')).status).toBe(200)
    counted = 0
    vendors.first.otherwise(works(family, hangs))
    vendors.second.answer(works(family, answerOf(family)))
    const hedged = call(family, 'v/two')
    await vendors.first.request(HEDGE_AFTER + 1)
    await advance(1)
    expect((await hedged).status).toBe(200)
    const rows = (await entries()).filter((row) => !(row.kind === 'call' && row.provider === 'v'))
    expect(rows).toMatchObject([
      { kind: 'call', provider: 'w' },
      { kind: 'lost_hedge', provider: 'v', amount: 0, estimated: 1 },
    ])
    expect(sum(rows, 'cost')).toBeGreaterThanOrEqual(counted)
  })
})

describe('an answer without usage', () => {
  it.each([true, false])(
    'is estimated, whatever an attempt before it has reported (passthrough: %p)',
    async (passthrough) => {
      const family = FAMILIES['chat completions, streamed'] as Family
      await setUp(family, { quirks: { passthrough } })
      const usage = { prompt_tokens: 5_000, completion_tokens: 0, total_tokens: 5_000 }
      const reported = { ...chunk({}), choices: [], usage }
      vendors.first.answer(stream([reported, { error: { message: 'failed', type: 'error' } }], { done: false }))
      vendors.second.answer(stream([chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop')]))
      expect((await call(family, 'v/two')).status).toBe(200)
      const [served] = await reconciled()
      expect(served).toMatchObject({ kind: 'call', provider: 'w', estimated: 1 })
      expect(served?.amount).toBeLessThan(100 * NANO)
    },
  )
})

describe('a text completion with several prompts', () => {
  const family = FAMILIES['text completions'] as Family
  const several = { ...family, body: { ...family.body, prompt: ['bad', 'a', 'b'] } }

  it.each([400, 429, 500, 503])(
    'charges the caller nothing, and costs the most once, where one gets %d',
    async (status) => {
      await setUp(several)
      vendors.first.otherwise(async (wire) => {
        if (!wire.request.body.includes('"bad"')) return await works(several, answerOf(several))(wire)
        await vendors.first.request(3)
        await settled(50) // the others have been read
        await failure(status)(wire)
      })
      expect((await call(several)).status).toBeGreaterThanOrEqual(400)
      const rows = await reconciled()
      expect(rows).toMatchObject([
        { kind: 'call', amount: 0, cost: 0 },
        { kind: 'lost_attempt', amount: 0, estimated: 1 },
      ])
    },
  )
})

describe('a cached call', () => {
  it('costs what the vendor counts for the first of them, however many wait for its answer', async () => {
    const family = FAMILIES.embeddings as Family
    await setUp(family, { cache: {} })
    vendors.first.answer(works(family, answerOf(family)))
    for (let repeated = 0; repeated < 3; repeated++) expect((await call(family)).status).toBe(200)
    const rows = await entries()
    expect([rows.length, sum(rows, 'cost'), counted]).toEqual([3, family.count, family.count])
  })
})

describe('a stream that has begun', () => {
  const family = FAMILIES['chat completions, streamed'] as Family
  /** So much the vendor has counted for what it has sent: a token a word, and one for the prompt. */
  const SENT = 4

  it.each(['left', 'cut', 'silent'] as const)('is charged for what was delivered where it is %s', async (end) => {
    await setUp(family)
    const leaving = new AbortController()
    const goesOn = Promise.withResolvers<void>()
    const [role = '', words = '', ...more] = chunks('One two three', 'never sent')
    const sent = stream([role, words, goesOn.promise, ...more], end === 'cut' ? { cutAfter: 2 } : { hangAfter: 2 })
    vendors.first.answer((wire) => {
      counted += SENT
      return sent(wire)
    })
    const json = { model: 'v/one', ...family.body }
    const response = await gateway.call(family.path, { json, signal: leaving.signal })
    const reader = response.body?.getReader()
    let text = ''
    while (!text.includes('three')) {
      const { done, value } = (await reader?.read()) ?? { done: true }
      if (done) throw new Error(`The stream ended with ${text}`)
      text += new TextDecoder().decode(value)
    }
    const rest = (async () => {
      while (!(await reader?.read())?.done);
    })().catch(() => {})
    await settled()
    goesOn.resolve()
    if (end === 'left') leaving.abort()
    if (end === 'silent') await advance(600)
    await rest
    const [own] = await reconciled()
    expect(own).toMatchObject({ estimated: 1 })
    expect(own?.amount).toBeLessThan(20 * NANO)
  })
})
