/** A budget that refuses calls: what the client gets, and how the operator is told. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { Budget } from '../src/spec/rate-limit.ts'
import { type AdminGateway, startAdminGateway } from './kit/admin.ts'
import { readScrape } from './kit/metrics.ts'
import { completion, hang, startVendor, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

type Started = { gateway: AdminGateway; vendor: Vendor; hook: Vendor }

/** Output costs 1 USD a token, input nothing. */
async function start(settings: Parameters<typeof startAdminGateway>[0] = {}): Promise<Started> {
  const [vendor, hook] = [startVendor(), startVendor()]
  hook.otherwise(whole({}))
  const gateway = await startAdminGateway({
    providers: { v: { base_url: vendor.url } },
    models: {
      'v/m': { prices: { input: 0, output: 1_000_000 } },
      'v/dear': { targets: [{ provider: 'v', model: 'm' }], prices: { input: 1_000_000, output: 1 } },
    },
    alerts: { webhook: { url: `${hook.origin}/hook` } },
    ...settings,
  })
  closing.push(vendor.stop, hook.stop, () => gateway[Symbol.asyncDispose]())
  return { gateway, vendor, hook }
}

/** What a call can cost is rounded up by some nano-units. */
const TOTAL = (amount: number): Budget => ({ amount: amount + 0.00001, window: 'total' })

async function issue({ gateway }: Started, budgets: Budget[], more: object = {}) {
  const { secret, token } = await gateway.instance.tokens.issue({ name: 'team', budgets, ...more })
  return { authorization: `Bearer ${secret}`, token_id: token.token_id }
}

type Caller = { authorization: string }

/** A call that costs `cost`, in any of the four APIs of chat. */
async function call(
  { gateway, vendor }: Started,
  { authorization }: Caller,
  cost: number,
  body: object,
  path = '/v1/chat/completions',
) {
  vendor.otherwise(
    whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: cost, total_tokens: 1 + cost } })),
  )
  const json = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }], ...body }
  const response = await gateway.call(path, { json, headers: { authorization } })
  return { status: response.status, message: String((await response.json()).error?.message) }
}

/** Lets the ledger write what calls are charged. */
async function appended({ gateway }: Started) {
  gateway.clock.advance(60)
  await settled()
}

/** The first events that the webhook gets. */
async function eventsOf({ gateway, hook }: Started, count: number) {
  await settled()
  gateway.clock.advance(5_000)
  await hook.request(count)
  return hook.requests.map(
    (request) => request.json() as { type: string; message: string; data: Record<string, unknown> },
  )
}

const metricsOf = async ({ gateway }: Started) => readScrape(await (await gateway.call('/metrics')).text())

describe('a budget that refuses a call', () => {
  it('is told to the operator once a day, by webhook, log and audit log', async () => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    expect((await call(started, caller, 9, { max_tokens: 9 })).status).toBe(200)
    await appended(started)
    for (let time = 0; time < 3; time++) expect((await call(started, caller, 1, { max_tokens: 5 })).status).toBe(429)
    const refusing = (await eventsOf(started, 3)).filter(({ type }) => type === 'budget.refusing')
    expect(refusing).toHaveLength(1)
    expect(refusing[0]).toMatchObject({
      message: expect.stringMatching(
        /^The budget of the token "team" refuses calls: 9 USD of 10.00001 USD in all are used, and a call may cost up to 5.0+3 USD.$/,
      ),
      data: {
        reason: 'used',
        scope: `token:${caller.token_id}`,
        owner: 'the token "team"',
        window: 'total',
        amount: 10.00001,
        used: 9,
        held: 0,
        call_may_cost: expect.closeTo(5, 6),
        currency: 'USD',
      },
    })
    const audit = async () =>
      (await started.gateway.read<{ data: Record<string, unknown>[] }>('/audit?action=budget.refusing')).data
    expect(await audit()).toMatchObject([
      {
        actor: 'gateway',
        object_type: 'token',
        object_id: caller.token_id,
        after: { used: 9, call_may_cost: expect.closeTo(5, 6) },
      },
    ])
    expect(started.gateway.logged()).toContain('"event":"a budget refuses calls"')
    started.gateway.clock.advance(86_400_000 - 10_000)
    await call(started, caller, 1, { max_tokens: 5 })
    await settled()
    expect(await audit()).toHaveLength(1)
    started.gateway.clock.advance(3_600_000)
    await call(started, caller, 1, { max_tokens: 5 })
    await settled()
    expect(await audit()).toHaveLength(2)
  })

  it('has reached 100 %, with what the call may cost', async () => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    await call(started, caller, 6, { max_tokens: 6 })
    await appended(started)
    await call(started, caller, 1, { max_tokens: 5 })
    const reached = (await eventsOf(started, 3)).filter(({ type }) => type === 'budget.threshold_reached')
    expect(reached.map(({ data }) => [data.threshold, data.used, data.call_may_cost])).toEqual([
      [50, 6, undefined],
      [100, 6, expect.closeTo(5, 6)],
    ])
    expect(reached[1]?.message).toBe('The budget of the token "team" has reached 100 %, with what a call may cost.')
  })

  it('has not reached 100 % where open calls hold the rest, which is told as such', async () => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    started.vendor.answer(hang())
    const leaving = new AbortController()
    const json = { model: 'v/m', max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] }
    const headers = { authorization: caller.authorization }
    const open = started.gateway.chat(json, { headers, signal: leaving.signal }).catch(() => {})
    await started.vendor.request(1)
    expect((await call(started, caller, 1, { max_tokens: 3 })).message).toContain('the rest is held for other calls')
    const labels = { scope: 'token', owner: caller.token_id }
    expect((await metricsOf(started)).sum('gatehouse_budget_held', labels)).toBeCloseTo(8, 3)
    const events = await eventsOf(started, 1)
    expect(events.map(({ type, data }) => [type, data.reason])).toEqual([['budget.refusing', 'held']])
    expect(events[0]?.message).toEndWith(
      '0 USD of 10.00001 USD in all are used, and open calls or other processes hold the rest.',
    )
    leaving.abort()
    await open
    while (!started.gateway.logged().includes('client_closed')) await settled()
    // What is used up later is told as well, although the day has not ended.
    await call(started, caller, 8, { max_tokens: 8 })
    await appended(started)
    await call(started, caller, 1, { max_tokens: 3 })
    await appended(started)
    const { data } = await started.gateway.read<{ data: { after: { reason: string } }[] }>(
      '/audit?action=budget.refusing',
    )
    expect(data.map(({ after }) => after.reason)).toEqual(['used', 'held'])
  })

  it('is reported as too small where one call may cost more than the whole budget', async () => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    expect((await call(started, caller, 1, { max_tokens: 11 })).status).toBe(429)
    const events = await eventsOf(started, 1)
    expect(events.map(({ type, data }) => [type, data.reason, data.used])).toEqual([
      ['budget.refusing', 'too_large', 0],
    ])
    expect(events[0]?.message).toMatch(/a call may cost up to 11\.0+\d+ USD, which is more than the whole budget\.$/)
  })

  it('is shown by a metric for 5 minutes', async () => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    const labels = { scope: 'token', owner: caller.token_id, window: 'total' }
    const refusing = async () => (await metricsOf(started)).sum('gatehouse_budget_refusing', labels)
    await call(started, caller, 9, { max_tokens: 9 })
    expect(await refusing()).toBe(0)
    await call(started, caller, 1, { max_tokens: 5 })
    expect(await refusing()).toBe(1)
    started.gateway.clock.advance(299_999)
    expect(await refusing()).toBe(1)
    started.gateway.clock.advance(1)
    expect(await refusing()).toBe(0)
  })

  it('is told of the installation and of projects too, and to the administrators of the project', async () => {
    const started = await start({ budgets: [TOTAL(4)] })
    const { project_id } = await started.gateway.instance.projects.create({ name: 'search', budgets: [TOTAL(2)] })
    await call(started, await issue(started, [], { project_id }), 1, { max_tokens: 3 })
    await call(started, await issue(started, [], { name: 'other' }), 1, { max_tokens: 5 })
    const events = (await eventsOf(started, 2)).filter(({ type }) => type === 'budget.refusing')
    expect(events.map(({ data }) => data.owner)).toEqual(['the project "search"', 'the installation'])
    const { data } = await started.gateway.read<{ data: unknown[] }>('/audit?action=budget.refusing')
    expect(data).toMatchObject([
      { object_type: 'installation', object_id: '', project_id: null },
      { object_type: 'project', object_id: project_id, project_id },
    ])
  })

  it('is not told where it is one of many end users', async () => {
    const started = await start()
    const caller = await issue(started, [], { end_users: { budgets: [TOTAL(2)] } })
    expect((await call(started, caller, 1, { max_tokens: 1, user: 'ann' })).status).toBe(200)
    await appended(started)
    expect((await call(started, caller, 1, { max_tokens: 2, user: 'ann' })).status).toBe(429)
    const told = (await eventsOf(started, 1)).map(({ type, data }) => [type, data.threshold])
    expect(told).toEqual([['budget.threshold_reached', 100]])
  })
})

describe('the error of a refused call', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  it.each([
    ['max_tokens', '/v1/chat/completions', { messages, max_tokens: 9 }],
    ['max_tokens', '/v1/messages', { messages, max_tokens: 9 }],
    ['max_output_tokens', '/v1/responses', { messages: undefined, input: 'hi', max_output_tokens: 9 }],
    [
      'generationConfig.maxOutputTokens',
      '/v1beta/models/v/m:generateContent',
      {
        model: undefined,
        messages: undefined,
        contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
        generationConfig: { maxOutputTokens: 9 },
      },
    ],
  ])('says with which %s the call would pass, at %s', async (field, path, body) => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    await call(started, caller, 7, { max_tokens: 7 })
    const { status, message } = await call(started, caller, 1, body, path)
    expect(status).toBe(429)
    expect(message).toEndWith(`With a smaller ${field} it would pass: at most 3 tokens of output can be paid now.`)
  })

  it('is true: with that limit the call passes, and with one token more it does not', async () => {
    const started = await start({ models: { 'v/m': { prices: { input: 20, output: 70.7 } } } })
    const caller = await issue(started, [{ amount: 0.1, window: 'day' }])
    const refused = await call(started, caller, 1, { max_tokens: 5_000 })
    const tokens = Number(/at most (\d+) tokens/.exec(refused.message)?.[1])
    expect(tokens).toBeGreaterThan(900)
    expect((await call(started, caller, 0, { max_tokens: tokens + 1 })).status).toBe(429)
    expect((await call(started, caller, 0, { max_tokens: tokens })).status).toBe(200)
  })

  it.each([
    ['nothing is left', 10, {}],
    ['the input alone costs more than is left', 1, { model: 'v/dear' }],
  ])('says nothing of it where %s', async (_, cost, body) => {
    const started = await start()
    const caller = await issue(started, [TOTAL(10)])
    await call(started, caller, cost, { max_tokens: cost })
    const { status, message } = await call(started, caller, 1, { max_tokens: 5, ...body })
    expect(status).toBe(429)
    expect(message).not.toContain('smaller')
  })
})
