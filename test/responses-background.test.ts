/** Responses that are made in the background: promised, asked for, followed, canceled; by several gateways, and after a crash. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { openPort, type Port } from './kit/served.ts'
import { chunk, chunks, failure, hang, startVendor, stream, usageChunk, type Vendor } from './kit/vendor.ts'

let directory: string
let vendor: Vendor
/** Two gateways on one database. */
let here: Port
let there: Port
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-background-'))
  vendor = startVendor()
  here = await openHere()
  there = await openHere()
})
afterEach(() => {
  vendor.requests.length = 0
})
afterAll(async () => {
  await here.close()
  await there.close()
  await vendor.stop()
  rmSync(directory, { recursive: true, force: true })
})

const TOKEN = 'sk-background-suite-000000000000'
const openHere = () =>
  openPort(
    {
      bootstrap_token: TOKEN,
      providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
      models: { 'v/m': {} },
    },
    { store_url: `sqlite:${join(directory, 'gatehouse.db')}` },
  )
const client = (port: Port = here, apiKey = TOKEN) => new OpenAI({ apiKey, baseURL: port.url, maxRetries: 0 }).responses
const ASKED = { model: 'v/m', input: 'Think long.', background: true } as const

/** Asks until it has ended, as a client does. */
async function ended(id: string, port: Port = here) {
  for (;;) {
    const response = await client(port).retrieve(id)
    if (response.status !== 'queued' && response.status !== 'in_progress') return response
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
async function errorOf(answer: PromiseLike<unknown>): Promise<unknown> {
  try {
    await answer
  } catch (error) {
    return error
  }
  throw new Error('It was answered.')
}

test('a background response is returned at once as queued, is generated and counted, and can be continued', async () => {
  const held = Promise.withResolvers<void>()
  vendor.answer(stream([held.promise, ...chunks('Well ', 'thought.')]))
  const queued = await client().create({ ...ASKED, metadata: { a: 'b' } })
  expect(queued).toMatchObject({ status: 'queued', background: true, store: true, output: [], usage: null })
  expect(await errorOf(client().create({ ...ASKED, previous_response_id: queued.id }))).toMatchObject({
    status: 400,
    param: 'previous_response_id',
  })
  held.resolve()
  const response = await ended(queued.id, there)
  expect(response).toMatchObject({
    id: queued.id,
    status: 'completed',
    output_text: 'Well thought.',
    metadata: { a: 'b' },
    usage: { input_tokens: 9, output_tokens: 3 },
    output: [{ id: `msg_${queued.id.slice(5)}_0` }],
  })
  vendor.answer(stream(chunks('More.')))
  const next = await client(there).create({ ...ASKED, input: 'And?', previous_response_id: queued.id })
  expect((await ended(next.id)).output_text).toBe('More.')
  expect(vendor.requests.at(-1)?.json().messages).toEqual([
    { role: 'user', content: 'Think long.' },
    { role: 'assistant', content: 'Well thought.' },
    { role: 'user', content: 'And?' },
  ])
  expect(vendor.requests).toHaveLength(2)
})

test('the usage of a background response is recorded for its token', async () => {
  const secret = await here.tokenFor(['*'])
  const { id } = await client(here, secret).create(ASKED)
  const own = client(here, secret)
  while ((await own.retrieve(id)).status !== 'completed') await new Promise((resolve) => setTimeout(resolve, 5))
  const { token_id } = (await here.gateway.instance.tokens.list()).findLast(({ name }) => name === 'narrow') ?? {}
  // The gateway that generated it, either of them, writes it down some seconds later, or when it is closed.
  await here.close()
  await there.close()
  here = await openHere()
  there = await openHere()
  const uses = await there.gateway.instance.usage({ limit: 100 })
  expect(uses.find((use) => use.token_id === token_id)).toMatchObject({
    requests: 1,
    input_tokens: 9,
    output_tokens: 3,
  })
})

test('an invalid request is rejected at once and not stored', async () => {
  for (const [more, status, param] of [
    [{ store: false }, 400, 'store'],
    [{ model: 'v/none' }, 404, 'model'],
    [{ tools: [{ type: 'computer' as const }] }, 400, 'tools[0].type'],
  ] as const) {
    expect(await errorOf(client().create({ ...ASKED, ...more } as never))).toMatchObject({ status, param })
  }
  expect(vendor.requests).toEqual([])
})

test('an error or a broken stream of the provider is reported in the response', async () => {
  vendor.answer(failure(400, { error: { message: 'No such thing.' } }))
  const refused = await ended((await client().create(ASKED)).id)
  expect([refused.status, refused.error?.code]).toEqual(['failed', 'invalid_prompt' as never])
  vendor.answer(stream([chunk({ content: 'Hel' })], { cutAfter: 1 }))
  const broken = await ended((await client().create(ASKED)).id)
  expect([broken.status, broken.error?.code]).toEqual(['failed', 'server_error'])
})

describe('cancel', () => {
  test('ends the response and the call of the provider; a second cancel changes nothing', async () => {
    vendor.answer(hang())
    const { id } = await client().create(ASKED)
    const asked = await vendor.request()
    expect((await client().cancel(id)).status).toBe('cancelled')
    await asked.aborted
    expect((await client(there).cancel(id)).status).toBe('cancelled')
    expect((await client().retrieve(id)).status).toBe('cancelled')
  })

  test('returns a response that has ended, and rejects one that is not in the background or belongs to another token', async () => {
    const done = await ended((await client().create(ASKED)).id)
    expect((await client().cancel(done.id)).status).toBe('completed')
    const plain = await client().create({ ...ASKED, background: false })
    expect(await errorOf(client().cancel(plain.id))).toMatchObject({ status: 400, param: 'response_id' })
    const stranger = client(here, await here.tokenFor(['*']))
    expect(await errorOf(stranger.cancel(done.id))).toMatchObject({ status: 404, code: 'response_not_found' })
  })

  test('is implied when a response is deleted', async () => {
    vendor.answer(hang())
    const { id } = await client().create(ASKED)
    const asked = await vendor.request()
    await client().delete(id)
    await asked.aborted
    expect(await errorOf(client().retrieve(id))).toMatchObject({ status: 404 })
  })
})

describe('the events of a background response', () => {
  test('are sent as they occur, and again from any position, by another gateway too', async () => {
    const held = Promise.withResolvers<void>()
    vendor.answer(
      stream([chunk({ content: 'Hel' }), held.promise, chunk({ content: 'lo' }), chunk({}, 'stop'), usageChunk()]),
    )
    const live = await client().create({ ...ASKED, stream: true })
    const numbers: number[] = []
    const types: string[] = []
    let id = ''
    for await (const event of live) {
      numbers.push(event.sequence_number)
      types.push(event.type.replace('response.', ''))
      if (event.type === 'response.created') id = event.response.id
      if (event.type === 'response.output_text.delta') break // the client leaves; it goes on
    }
    expect(types).toEqual([
      'created',
      'queued',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
    ])
    const after = numbers.at(-1) ?? 0
    const rest = await client(there).retrieve(id, { stream: true, starting_after: after })
    held.resolve()
    let said = ''
    for await (const event of rest) {
      numbers.push(event.sequence_number)
      if (event.type === 'response.output_text.delta') said += event.delta
      if (event.type === 'response.completed') said += `|${event.response.output_text ?? event.response.status}`
    }
    expect(said).toStartWith('lo|')
    expect(numbers).toEqual(numbers.map((_number, index) => index))
    const again = await client()
      .stream({ response_id: id, starting_after: 0 } as never)
      .finalResponse()
    expect([again.status, again.output_text]).toEqual(['completed', 'Hello'])
    const beyond: unknown[] = []
    for await (const event of await client().retrieve(id, { stream: true, starting_after: 2 ** 33 })) beyond.push(event)
    expect(beyond).toEqual([])
    expect(vendor.requests).toHaveLength(1)
  })

  test('end when the response is cancelled', async () => {
    vendor.answer(hang())
    const live = await client().create({ ...ASKED, stream: true })
    let last = ''
    for await (const event of live) {
      last = event.type
      if (event.type !== 'response.queued') continue
      await vendor.request()
      await client(there).cancel(event.response.id)
    }
    expect(['response.queued', 'response.in_progress']).toContain(last)
  })

  test('report a failure', async () => {
    vendor.answer(failure(429, { error: { message: 'Slow down.' } }))
    const live = await client().create({ ...ASKED, stream: true })
    const types: string[] = []
    const error = await errorOf(
      (async () => {
        for await (const event of live) types.push(event.type)
      })(),
    )
    expect(error).toMatchObject({ code: 'rate_limit_exceeded' })
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.queued'])
  })

  test('are rejected for a response without a stream, for an invalid position and for another token', async () => {
    const { id } = await client().create(ASKED)
    expect(await errorOf(client().retrieve(id, { stream: true }))).toMatchObject({ status: 400, param: 'stream' })
    const response = await fetch(`${here.url}/responses/${id}?stream=true&starting_after=x`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    })
    expect(response.status).toBe(400)
    for (const query of ['stream=null', 'starting_after=-1']) {
      const wrong = await fetch(`${here.url}/responses/${id}?${query}`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      })
      expect([wrong.status, (await wrong.json()).error.param]).toEqual([400, query.split('=')[0]])
    }
    const stranger = client(here, await here.tokenFor(['*']))
    expect(await errorOf(stranger.retrieve(id, { stream: true }))).toMatchObject({ status: 404 })
    await ended(id)
  })
})
