/** `GET /admin/v1/events`: what happens, as server-sent events, to those who may know it. */
import { afterEach, describe, expect, test } from 'bun:test'
import { startAdminGateway } from './kit/admin.ts'

const closing: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function setUp() {
  const gateway = await startAdminGateway({ sandbox: true })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

type Told = { type: string; data: Record<string, unknown> }

/** Reads one event after the other. */
function reader(response: Response) {
  const events = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    async next(): Promise<Told | undefined> {
      for (;;) {
        const end = text.indexOf('\n\n')
        if (end >= 0) {
          const block = text.slice(0, end)
          text = text.slice(end + 2)
          const data = /^data: (.*)$/m.exec(block)?.[1]
          if (data !== undefined) return JSON.parse(data) as Told
          continue
        }
        const { done, value } = (await events?.read()) ?? { done: true }
        if (done) return undefined
        text += value
      }
    },
    cancel: () => events?.cancel(),
  }
}

const QUESTION = { model: 'sandbox/general', messages: [{ role: 'user', content: 'a secret question' }] }

describe('live events', () => {
  test('contain a request with its cost and attempts, without its content', async () => {
    const gateway = await setUp()
    const events = reader(await gateway.admin('/events?types=request'))
    const first = events.next()
    await gateway.chat(QUESTION, { headers: { 'x-request-id': 'mine' } })
    gateway.clock.advance(20)
    expect(await first).toMatchObject({
      type: 'request',
      data: { request_id: 'mine', model: 'sandbox/general', status: 200, attempts: [{ target: 'sandbox/general' }] },
    })
    expect(JSON.stringify(await first)).not.toContain('secret question')
    await events.cancel()
  })

  test('are the newest requests of a batch where a reader wants no more, and say how many there were besides', async () => {
    const gateway = await setUp()
    const events = reader(await gateway.admin('/events?types=request,alert&newest=2'))
    const ids = async (...names: string[]) => {
      for (const name of names) await gateway.chat(QUESTION, { headers: { 'x-request-id': name } })
      gateway.clock.advance(20)
    }
    await ids('first')
    expect((await events.next())?.data.request_id).toBe('first')
    await ids('a', 'b', 'c', 'd')
    gateway.clock.advance(200)
    const read = [await events.next(), await events.next(), await events.next()]
    expect(read.map((event) => event?.data.request_id)).toEqual(['c', 'd', undefined])
    expect(read[2]).toMatchObject({ type: 'dropped', data: { events: 2 } })
    await ids('e', 'f')
    gateway.clock.advance(200)
    expect((await events.next())?.data.request_id).toBe('e')
    expect((await events.next())?.data.request_id).toBe('f')
    await events.cancel()
    for (const newest of ['0', '1001', 'all']) {
      const refused = await gateway.admin(`/events?newest=${newest}`)
      expect([refused.status, (await refused.json()).error.param]).toEqual([400, 'newest'])
    }
  })

  test('contain a change with who made it', async () => {
    const gateway = await setUp()
    const events = reader(await gateway.admin('/events?types=audit'))
    const first = events.next()
    await gateway.admin('/tokens', { method: 'POST', json: { name: 'new' } })
    gateway.clock.advance(1_000)
    expect(await first).toMatchObject({ type: 'audit', data: { action: 'token.create', actor: 'environment' } })
    await events.cancel()
  })

  test('show a project_admin what belongs to its project only', async () => {
    const gateway = await setUp()
    const { project_id } = await gateway.instance.projects.create({ name: 'p' })
    const { secret: other } = await gateway.instance.tokens.issue({ name: 'other' })
    const { secret: own } = await gateway.instance.tokens.issue({ name: 'own', project_id })
    const created = await gateway.admin('/admin-tokens', {
      method: 'POST',
      json: { name: 'pa', role: 'project_admin', project_id },
    })
    const { secret } = (await created.json()) as { secret: string }
    const events = reader(await gateway.admin('/events?types=request', { as: secret }))
    const first = events.next()
    for (const token of [other, own]) {
      await gateway.chat(QUESTION, { headers: { authorization: `Bearer ${token}` } })
    }
    gateway.clock.advance(20)
    expect(await first).toMatchObject({ data: { project_id } })
    await events.cancel()
  })

  test('end when the admin token of the reader was revoked', async () => {
    const gateway = await setUp()
    const created = await gateway.admin('/admin-tokens', { method: 'POST', json: { name: 'v', role: 'viewer' } })
    const { secret, admin_token_id } = (await created.json()) as { secret: string; admin_token_id: string }
    const events = reader(await gateway.admin('/events?types=request', { as: secret }))
    const ended = events.next()
    expect((await gateway.admin(`/admin-tokens/${admin_token_id}`, { method: 'DELETE' })).status).toBeLessThan(300)
    gateway.clock.advance(10_000)
    expect(await ended).toBeUndefined()
  })

  test('end when the gateway drains', async () => {
    const gateway = await setUp()
    const events = reader(await gateway.admin('/events'))
    const ended = events.next()
    await gateway.instance.drain({ deadline_ms: 1000 })
    expect(await ended).toBeUndefined()
  })

  test('refuse an unknown type, and API tokens', async () => {
    const gateway = await setUp()
    const refused = await gateway.admin('/events?types=request,nothing')
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 'invalid_value', param: 'types', message: expect.stringContaining('request, audit, alert') } },
    ])
    expect((await gateway.admin('/events', { as: gateway.token })).status).toBe(401)
  })
})
