/** Live events of several processes: two gateways on one store, a follower that comes back, and what nobody follows. */
import { afterEach, describe, expect, it } from 'bun:test'
import { openStore } from '../src/store/open-store.ts'
import { type AdminGateway, OWNER, startAdminGateway } from './kit/admin.ts'
import { ENGINES } from './kit/engines.ts'

const closing: (() => PromiseLike<unknown>)[] = []
async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).toReversed()) await close()
}
afterEach(closeAll)
const CHAT = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }

async function start(store_url: string): Promise<AdminGateway> {
  const gateway = await startAdminGateway({}, { store_url })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

type Event = { id: string | undefined; type: string; data: Record<string, unknown> }

/** What it reads is in `seen`. */
async function follow(gateway: AdminGateway, headers: Record<string, string> = {}, query = '?types=request') {
  const ending = new AbortController()
  const response = await gateway.admin(`/events${query}`, { headers, signal: ending.signal })
  const seen: Event[] = []
  const reading = (async () => {
    let text = ''
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (data) seen.push({ id: /^id: (.*)$/m.exec(block)?.[1], ...JSON.parse(data) })
      }
    }
  })().catch(() => undefined)
  const stop = async () => {
    ending.abort()
    await reading
  }
  return { seen, stop }
}

/**
 * The clocks go on until a condition holds, ten times as fast as time at most: a store on a busy machine answers before
 * their minute is over in which nothing is lost.
 */
async function until(holds: () => unknown, ...gateways: AdminGateway[]): Promise<void> {
  for (let turn = 0; turn < 20_000; turn++) {
    if (await holds()) return
    for (const gateway of gateways) gateway.clock.advance(10)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  throw new Error('it did not happen')
}

/** Of the last token that the store knows: the first gateway made it. */
const chat = (gateway: AdminGateway, token: string, id: string) =>
  gateway.chat(CHAT, { headers: { authorization: `Bearer ${token}`, 'x-request-id': id } })
const ids = ({ seen }: { seen: Event[] }) => seen.map(({ data }) => data.request_id)

describe.each(ENGINES.filter(({ url }) => url))('live events of two processes, on $name', (engine) => {
  afterEach(async () => {
    await closeAll()
    await engine.cleanup()
  })

  it('are seen at either, and by who comes back without a loss or a repetition', async () => {
    await engine.open()
    const url = engine.url?.() ?? ''
    const [here, there] = [await start(url), await start(url)]
    const events = await follow(here)
    const store = await openStore({ url })
    closing.push(() => store.close())
    await until(async () => (await store.live.askedUntil('')) > 0, here, there)
    let count = 0
    await until(
      async () => {
        await chat(there, here.token, `there-${count++}`)
        return events.seen.length > 0
      },
      here,
      there,
    )
    await chat(here, here.token, 'here')
    await until(() => ids(events).includes('here'), here, there)
    const { id } = events.seen.at(-1) ?? {}
    await events.stop()
    const before = ids(events).length
    await chat(there, here.token, 'meanwhile')
    await until(
      async () => (await store.live.after(0, 5_000)).some(({ text }) => text.includes('meanwhile')),
      here,
      there,
    )
    const again = await follow(here, { 'last-event-id': id ?? '' })
    await until(() => ids(again).includes('meanwhile'), here, there)
    expect(before).toBeGreaterThan(1)
    expect(again.seen.every(({ type }) => type === 'request')).toBe(true)
    expect(ids(again).filter((one) => ids(events).includes(one))).toEqual([])
    await again.stop()
  }, 120_000)

  /** Follows at one process until it has read an event of it, and returns the place after that. */
  async function leave(gateway: AdminGateway, ...all: AdminGateway[]): Promise<string> {
    const events = await follow(gateway)
    await chat(gateway, all[0]?.token ?? '', 'first')
    await until(() => events.seen.length > 0, ...all)
    await events.stop()
    return events.seen[0]?.id ?? ''
  }

  it('are found at another process by who was at the one in which they happened', async () => {
    await engine.open()
    const url = engine.url?.() ?? ''
    const [here, there] = [await start(url), await start(url)]
    const place = await leave(here, here, there)
    await chat(here, here.token, 'missed')
    here.instance.flushRequests()
    const again = await follow(there, { 'last-event-id': place })
    await until(() => again.seen.length > 0, here, there)
    await chat(here, here.token, 'later')
    await until(() => again.seen.length > 1, here, there)
    expect(again.seen.map(({ type, data }) => [type, data.request_id])).toEqual([
      ['request', 'missed'],
      ['request', 'later'],
    ])
    await again.stop()
  }, 120_000)

  it('are found at another process after theirs has stopped', async () => {
    await engine.open()
    const url = engine.url?.() ?? ''
    const [here, there] = [await start(url), await start(url)]
    const place = await leave(here, here, there)
    await chat(here, here.token, 'missed')
    here.instance.flushRequests()
    await here.instance.close({ deadline_ms: 1_000 })
    const again = await follow(there, { 'last-event-id': place })
    await until(() => again.seen.length > 0, there)
    for (let turn = 0; turn < 60; turn++) there.clock.advance(100)
    expect(again.seen.map(({ type, data }) => [type, data.request_id])).toEqual([['request', 'missed']])
    await again.stop()
  }, 120_000)

  it('are said to be missing where the process in which they happened is gone', async () => {
    await engine.open()
    const url = engine.url?.() ?? ''
    const [here, there] = [await start(url), await start(url)]
    const place = await leave(here, here, there)
    const again = await follow(there, { 'last-event-id': place.replace(/[A-Za-z]\w+/, 'gone') })
    await until(() => again.seen.length > 0, there)
    expect(again.seen[0]).toMatchObject({ type: 'dropped', data: { events: null } })
    await again.stop()
  }, 120_000)

  it('are not stored while they are followed in the process in which they happen only', async () => {
    await engine.open()
    const url = engine.url?.() ?? ''
    const [here, there] = [await start(url), await start(url)]
    await leave(here, here, there)
    const store = await openStore({ url })
    closing.push(() => store.close())
    const rows = await store.live.after(0, 100)
    expect(rows.filter(({ type }) => type !== 'gap')).toEqual([])
  }, 120_000)
})

describe('live events', () => {
  it('are not stored while nobody follows', async () => {
    const engine = ENGINES[1]
    await engine?.open()
    const url = engine?.url?.() ?? ''
    const gateway = await start(url)
    await gateway.chat(CHAT)
    gateway.clock.advance(1_000)
    gateway.instance.flushRequests()
    const store = await openStore({ url })
    closing.push(() => store.close())
    expect([await store.live.last(), await store.live.askedUntil('')]).toEqual([0, 0])
    await gateway[Symbol.asyncDispose]()
    closing.shift()
    await engine?.cleanup()
  })

  it('say that something is missing to who comes back too late', async () => {
    const gateway = await start('sqlite::memory:')
    const events = await follow(gateway)
    await until(() => chat(gateway, gateway.token, 'a').then(() => events.seen.length > 0), gateway)
    const { id } = events.seen.at(-1) ?? {}
    await events.stop()
    gateway.clock.advance(120_000)
    await chat(gateway, gateway.token, 'missed')
    gateway.instance.flushRequests()
    const again = await follow(gateway, { 'last-event-id': id ?? '' })
    await until(() => again.seen.length > 0, gateway)
    expect(again.seen[0]).toMatchObject({ type: 'dropped', data: { events: null } })
    await again.stop()
  })

  it('of the audit log go on where the reader was', async () => {
    const gateway = await start('sqlite::memory:')
    const events = await follow(gateway, {}, '?types=audit')
    await until(
      () => gateway.admin('/tokens', { json: { name: 'a' }, as: OWNER }).then(() => events.seen.length > 0),
      gateway,
    )
    const { id } = events.seen.at(-1) ?? {}
    await events.stop()
    await gateway.admin('/projects', { json: { name: 'meanwhile' } })
    const again = await follow(gateway, { 'last-event-id': id ?? '' }, '?types=audit')
    await until(() => again.seen.some(({ data }) => data.action === 'project.create'), gateway)
    await again.stop()
  })

  it('contain the states of a task, without its request', async () => {
    const gateway = await start('sqlite::memory:')
    const events = await follow(gateway, {}, '?types=task')
    const json = { model: 'sandbox/text-to-video', prompt: 'a secret wish' }
    await until(() => gateway.call('/v1/videos', { json }).then(() => events.seen.length > 0), gateway)
    expect(events.seen[0]).toMatchObject({ type: 'task', data: { model: 'sandbox/text-to-video', project_id: null } })
    expect(JSON.stringify(events.seen)).not.toContain('secret wish')
    await events.stop()
  })
})
