/** Sessions of calls: requests that callers put together by a header, as the admin API sums them up. */
import { afterEach, expect, it } from 'bun:test'
import { type AdminGateway, startAdminGateway } from './kit/admin.ts'

let gateway: AdminGateway
afterEach(() => gateway?.[Symbol.asyncDispose]())

const ask = (session: string | undefined, more: Record<string, string> = {}, model = 'sandbox/general') =>
  gateway.chat(
    { model, messages: [{ role: 'user', content: 'Hello' }] },
    { headers: { ...(session !== undefined && { 'x-gatehouse-session': session }), ...more } },
  )

type Session = { session: string; requests: number; errors: number }
const read = (query = '') => gateway.read<{ data: Session[]; partial: boolean }>(`/request-sessions${query}`)

it('are summed up, the last used first, and their rows are those of the filter', async () => {
  gateway = await startAdminGateway()
  for (const session of ['a', 'b', undefined, 'a']) {
    await ask(session)
    gateway.clock.advance(1_000)
  }
  await ask('b', {}, 'none')
  gateway.clock.advance(1_000)
  gateway.instance.flushRequests()
  const { data, partial } = await read()
  expect(partial).toBe(false)
  expect(data).toMatchObject([
    { session: 'b', requests: 2, errors: 1, models: ['sandbox/general'] },
    { session: 'a', requests: 2, errors: 0 },
  ])
  const rows = await gateway.read<{ data: object[] }>('/requests?session=b')
  expect(rows.data).toHaveLength(2)
  expect((await read('?model=nothing')).data).toEqual([])
})

it('of another project are not seen', async () => {
  gateway = await startAdminGateway()
  const { project_id } = await gateway.instance.projects.create({ name: 'p' })
  const { secret } = await gateway.instance.tokens.issue({ name: 'own', project_id })
  const json = { name: 'm', role: 'project_member', project_id }
  const member = await gateway.read<{ secret: string }>('/admin-tokens', { json })
  await ask('ours', { authorization: `Bearer ${secret}` })
  await ask('theirs')
  gateway.clock.advance(1_000)
  gateway.instance.flushRequests()
  const { data } = await gateway.read<{ data: Session[] }>('/request-sessions', { as: member.secret })
  expect(data.map(({ session }) => session)).toEqual(['ours'])
})
