/** The admin API's summaries for charts, from calls to series. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { Summary, SummarySeries } from '../src/observe/requests/summaries.ts'
import { refusal, startAdminGateway } from './kit/admin.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Answer = Omit<Summary, 'series'> & {
  object: string
  start: number
  end: number
  by: string
  series: (SummarySeries & { name: string })[]
}

async function start() {
  const gateway = await startAdminGateway()
  closing.push(() => gateway[Symbol.asyncDispose]())
  const say = async (model: string, headers: Record<string, string> = {}) =>
    (await gateway.chat({ model, messages: [{ role: 'user', content: 'Hello' }] }, { headers })).text()
  return { gateway, say, summary: (query = '') => gateway.read<Answer>(`/summary?${query}`) }
}

type Gateway = Awaited<ReturnType<typeof start>>['gateway']

async function projectWithToken(gateway: Gateway, name: string) {
  const create = async (path: string, json: unknown) =>
    (await (await gateway.admin(path, { method: 'POST', json })).json()) as Record<string, string>
  const { project_id = '' } = await create('/projects', { name })
  const { token_id = '', secret: token = '' } = await create('/tokens', { name: `token of ${name}`, project_id })
  const lead = { name: `lead of ${name}`, role: 'project_admin', project_id }
  const { secret = '' } = await create('/admin-tokens', lead)
  return { project_id, token_id, headers: { authorization: `Bearer ${token}` }, as: secret }
}

const callsOf = ({ series }: Answer) => Object.fromEntries(series.map(({ name, total }) => [name, total.calls]))

describe('GET /admin/v1/summary', () => {
  it('sums calls up for a chart, by time and by one dimension', async () => {
    const { say, summary } = await start()
    for (const model of ['sandbox/general', 'sandbox/general', 'nobody/none']) await say(model)
    const found = await summary('step=minute&by=model')
    expect(found).toMatchObject({ object: 'summary', step: 'minute', by: 'model', other: false })
    expect(callsOf(found)).toEqual({ 'sandbox/general': 2, '(none)': 1 })
    expect(found.total).toMatchObject({ calls: 3, errors: { model_not_found: 1 } })
    expect(found.total.input_tokens).toBeGreaterThan(0)
    expect(found.total.duration.p95).not.toBeNull()
    const [series] = found.series
    expect(series?.points.every(({ time }) => time % 60 === 0 && time >= found.start && time < found.end)).toBe(true)
    expect((await summary('step=minute')).series).toMatchObject([{ key: null, name: 'all', total: { calls: 3 } }])
  })

  it('leaves out the points where only totals are asked for', async () => {
    const { gateway, say } = await start()
    await say('sandbox/general')
    await say('nobody/none')
    const read = (query: string) => gateway.read<Summary>(`/summary?by=model&limit=1${query}`)
    const [whole, totals] = [await read(''), await read('&points=false')]
    expect(whole.series.every(({ points }) => points.length > 0)).toBe(true)
    expect(totals).toEqual({ ...whole, series: whole.series.map((series) => ({ ...series, points: [] })) })
    expect(await refusal(await gateway.admin('/summary?points=none'))).toEqual([400, 'invalid_value'])
  })

  it('joins all but the largest keys as other', async () => {
    const { say, summary } = await start()
    for (const model of ['sandbox/general', 'sandbox/general', 'sandbox/general', 'nobody/none', 'nobody/none'])
      await say(model)
    const found = await summary('by=model&limit=1&step=hour')
    expect(callsOf(found)).toEqual({ 'sandbox/general': 3, other: 2 })
    expect(found.other).toBe(true)
    expect(found.series.at(-1)).toMatchObject({ key: null, total: { errors: { model_not_found: 2 }, input_tokens: 0 } })
  })

  it('filters by each dimension, and by tags and end users', async () => {
    const { gateway, say, summary } = await start()
    const team = await projectWithToken(gateway, 'team')
    await say('sandbox/general', { 'x-gatehouse-user': 'ann', 'x-gatehouse-tags': 'blue,green' })
    await say('sandbox/general', { ...team.headers, 'x-gatehouse-user': 'ann' })
    expect(callsOf(await summary('by=user'))).toEqual({ ann: 2 })
    expect(callsOf(await summary('by=tag'))).toEqual({ blue: 1, green: 1 })
    expect(callsOf(await summary(`by=token&project=${team.project_id}`))).toEqual({ 'token of team': 1 })
    expect(callsOf(await summary('user=ann&by=project'))).toMatchObject({ team: 1 })
    expect((await summary(`user=ann&project=${team.project_id}`)).total.calls).toBe(1)
    expect((await summary(`token=${team.token_id}&model=sandbox/general`)).total.calls).toBe(1)
    expect((await summary('provider=sandbox')).total.calls).toBe(2)
    expect((await summary('provider=none')).series).toMatchObject([{ points: [] }])
  })

  it('shows a project_admin the calls of its project and no others', async () => {
    const { gateway, say } = await start()
    const [team, other] = [await projectWithToken(gateway, 'team'), await projectWithToken(gateway, 'other')]
    await say('sandbox/general', { ...team.headers, 'x-gatehouse-user': 'ann' })
    await say('sandbox/general', { ...other.headers, 'x-gatehouse-user': 'ann' })
    await say('nobody/none', other.headers)
    const read = (query: string) => gateway.read<Answer>(`/summary?${query}`, { as: team.as })
    for (const query of ['by=none', 'by=model', 'by=token', 'by=project', 'by=provider', 'by=user', 'user=ann'])
      expect([query, (await read(query)).total.calls]).toEqual([query, 1])
    expect(callsOf(await read('by=model'))).toEqual({ 'sandbox/general': 1 })
    expect(callsOf(await read('by=project'))).toEqual({ team: 1 })
    expect(callsOf(await read(`by=model&token=${team.token_id}`))).toEqual({ 'sandbox/general': 1 })
    expect((await read('model=sandbox/general')).total.calls).toBe(1)
    for (const query of [
      `project=${other.project_id}`,
      `token=${other.token_id}`,
      `token=${other.token_id}&by=model`,
      `token=${other.token_id}&project=${team.project_id}`,
      `token=${team.token_id}&project=${other.project_id}`,
      'model=nobody/none',
    ])
      expect([query, (await read(query)).total.calls]).toEqual([query, 0])
  })

  it('says what is wrong with a query, and what would be right', async () => {
    const { gateway } = await start()
    const cases = {
      'start=2026-01-02&end=2026-01-01': '"start" must be before "end"',
      'start=x': '"start" must be a date such as 2026-01-31, or unix seconds.',
      'start=1&from=1': '"start" and "from" are the same: give one.',
      'step=second': '"step" must be one of minute, hour, day.',
      'by=colour': '"by" must be one of project, token, model, provider, user, tag, none.',
      'order=name': '"order" must be one of calls, charge, cost.',
      'limit=51': '"limit" must be an integer from 1 to 50.',
      'model=': '"model" must have 1 to 512 characters.',
      'step=minute&start=2026-01-01&end=2026-01-31': 'More than 1500 steps: ask for a longer step or a shorter time.',
      'model=a&by=user': 'No sums are kept for model by user.',
      'model=a&token=b&provider=c': 'No sums are kept for token and model and provider by none.',
    }
    for (const [query, message] of Object.entries(cases)) {
      const response = await gateway.admin(`/summary?${query}`)
      expect([query, (await response.clone().json()).error.message]).toEqual([query, expect.stringContaining(message)])
      expect(await refusal(response)).toEqual([400, 'invalid_value'])
    }
  })
})

describe('GET /admin/v1/requests/facets', () => {
  type Facets = {
    partial: boolean
    rows: number
    facets: { filter: string; values: { value: string; name: string; count: number }[] }[]
  }

  it('counts the values of each filter, and names tokens and projects', async () => {
    const { gateway, say } = await start()
    const team = await projectWithToken(gateway, 'team')
    await say('sandbox/general', team.headers)
    await say('nobody/none', team.headers)
    const found = await gateway.read<Facets>(`/requests/facets?project=${team.project_id}`)
    expect(found).toMatchObject({ object: 'facets', partial: false, rows: 2, from: null })
    const values = Object.fromEntries(found.facets.map((facet) => [facet.filter, facet.values]))
    expect(values).toMatchObject({
      model: [{ value: 'sandbox/general', name: 'sandbox/general', count: 1 }],
      token: [{ value: team.token_id, name: 'token of team', count: 2 }],
      project: [{ value: team.project_id, name: 'team', count: 2 }],
      error: [{ value: 'model_not_found', count: 1 }],
    })
    expect(values.status?.map(({ value }) => value)).toEqual(['200', '404'])
    for (const { filter, values: own } of found.facets)
      for (const { value, count } of own) {
        const { data } = await gateway.read<{ data: unknown[] }>(`/requests?${filter}=${encodeURIComponent(value)}`)
        expect([filter, value, data.length]).toEqual([filter, value, count])
      }
  })

  it('counts only the requests of the project of a project_admin', async () => {
    const { gateway, say } = await start()
    const [team, other] = [await projectWithToken(gateway, 'team'), await projectWithToken(gateway, 'other')]
    await say('sandbox/general', team.headers)
    await say('sandbox/general', other.headers)
    const read = (query: string) => gateway.read<Facets>(`/requests/facets?${query}`, { as: team.as })
    expect((await read('')).facets.find(({ filter }) => filter === 'token')?.values).toHaveLength(1)
    expect((await read(`project=${other.project_id}`)).rows).toBe(0)
    expect((await read(`token=${other.token_id}`)).rows).toBe(0)
    expect(await refusal(await gateway.admin('/requests/facets?status=x'))).toEqual([400, 'invalid_value'])
  })
})
