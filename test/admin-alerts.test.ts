/** The admin API's alerts: recorded whether or not somebody is alerted, closed by operators. */
import { afterEach, expect, it } from 'bun:test'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'

let gateway: AdminGateway
afterEach(() => gateway?.[Symbol.asyncDispose]())

type Alert = { alert_id: string; type: string; state: string; message: string; data: object }
const CHAT = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }

/** A budget refuses a call. */
async function refused(): Promise<void> {
  gateway = await startAdminGateway({ models: { 'sandbox/general': { prices: { input: 1, output: 1_000_000 } } } })
  const json = { name: 'poor', budgets: [{ amount: 0.00001, window: 'total' }] }
  const { secret } = await gateway.read<{ secret: string }>('/tokens', { json })
  const response = await gateway.chat(CHAT, { headers: { authorization: `Bearer ${secret}` } })
  expect(response.status).toBe(429)
}

const list = async (query = '') => (await gateway.read<{ data: Alert[] }>(`/alerts${query}`)).data

async function untilListed(): Promise<Alert> {
  for (;;) {
    const [alert] = await list()
    if (alert) return alert
    await Bun.sleep(0)
  }
}

it('lists what was raised although no channel is configured, until it is over', async () => {
  await refused()
  const alert = await untilListed()
  expect(alert).toMatchObject({ object: 'alert', type: 'budget.refusing', state: 'open', times: 1, closed_at: null })
  expect(await list('?state=open')).toHaveLength(1)
  expect(await list('?type=disk.low')).toEqual([])
  gateway.clock.advance(2 * 86_400_000)
  expect(await list('?state=past')).toMatchObject([{ alert_id: alert.alert_id, state: 'past' }])
})

it('is closed by an operator, once, with a row of the audit log', async () => {
  await refused()
  const { alert_id } = await untilListed()
  const close = () => gateway.admin(`/alerts/${alert_id}/close`, { method: 'POST' })
  expect(await (await close()).json()).toMatchObject({ state: 'past', closed_by: 'environment' })
  expect(await refusal(await close())).toEqual([400, 'invalid_value'])
  const { data } = await gateway.read<{ data: object[] }>('/audit?action=alert.close')
  expect(data).toMatchObject([{ object_id: alert_id, after: { type: 'budget.refusing' } }])
})

it('says what is wrong with a filter', async () => {
  gateway = await startAdminGateway()
  expect(await refusal(await gateway.admin('/alerts?state=shut'))).toEqual([400, 'invalid_value'])
  expect(await refusal(await gateway.admin('/alerts/none/close', { method: 'POST' }))).toEqual([
    404,
    'object_not_found',
  ])
})
