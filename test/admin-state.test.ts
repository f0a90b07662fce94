/** State of a gateway in the admin API: its readiness, and what is left of the limits of a token. */
import { afterEach, describe, expect, test } from 'bun:test'
import { refusal, startAdminGateway } from './kit/admin.ts'

const closing: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function setUp() {
  const gateway = await startAdminGateway({ sandbox: true })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

describe('readiness', () => {
  test('says that nothing waits in a gateway that is ready, and which version it is', async () => {
    const gateway = await setUp()
    expect(await gateway.read('/readiness')).toEqual({
      status: 'ready',
      reason: null,
      version: expect.any(String),
      open_requests: 1,
      ledger: { queued: 0, lag_seconds: 0, spool_bytes: 0, lost: 0, is_store_away: false },
      tasks: { unfinished: 0, oldest_seconds: 0, lag_seconds: 0 },
    })
  })

  test('counts a task that waits', async () => {
    const gateway = await setUp()
    const json = { model: 'sandbox/text-to-video', prompt: 'A kite' }
    const headers = { authorization: `Bearer ${gateway.token}` }
    expect((await gateway.call('/v1/video/generations', { json, headers })).status).toBe(200)
    expect(await gateway.read('/readiness')).toMatchObject({ tasks: { unfinished: 1 } })
  })
})

describe('the limits of a token', () => {
  test('are those that the token itself reads, with its project', async () => {
    const gateway = await setUp()
    const limit = (amount: number) => ({ rate_limits: { requests_per_minute: amount } })
    const { project_id } = await gateway.instance.projects.create({ name: 'p', ...limit(50) })
    const { secret, token } = await gateway.instance.tokens.issue({ name: 't', project_id, ...limit(10) })
    const as = { headers: { authorization: `Bearer ${secret}` } }
    const question = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hi' }] }
    expect((await gateway.chat(question, as)).status).toBe(200)
    const shown = await gateway.read(`/tokens/${token.token_id}/limits`)
    expect(shown).toMatchObject({
      token_id: token.token_id,
      rate_limits: [{ limit: 'requests_per_minute', amount: 10, remaining: 9 }],
      project: { project_id, rate_limits: [{ amount: 50, remaining: 49 }] },
    })
    expect(await (await gateway.call('/v1/limits', as)).json()).toEqual(shown)
  })

  test('are not there for a token that was revoked', async () => {
    const gateway = await setUp()
    const { token } = await gateway.instance.tokens.issue({ name: 't' })
    await gateway.instance.tokens.revoke(token.token_id)
    expect(await refusal(await gateway.admin(`/tokens/${token.token_id}/limits`))).toEqual([404, 'object_not_found'])
    expect(await refusal(await gateway.admin('/tokens/tok_none/limits'))).toEqual([404, 'object_not_found'])
  })
})
