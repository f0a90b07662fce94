import { afterEach, describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import type { AlertsConfig } from '../config/account-schema.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import { createLog } from '../kit/log.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { createAlerts } from './alerts.ts'

const stores: Store[] = []
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})

async function setUp(settings: AlertsConfig = { webhook: { url: 'http://10.0.0.1/hook?key=hidden' } }) {
  const clock = manualClock()
  const store = await openStore({ url: 'sqlite::memory:' })
  stores.push(store)
  const sent: Parameters<GuardedFetch>[0][] = []
  const statuses: number[] = []
  const guardedFetch = (async (request: Parameters<GuardedFetch>[0]) => {
    sent.push(request)
    return { status: statuses.shift() ?? 200, headers: new Headers(), body: new Response('').body }
  }) as unknown as GuardedFetch
  let logged = ''
  const log = createLog({ clock, level: 'info', pretty: false, write: (text) => { logged += text } }) // biome-ignore format: short
  const alerts = createAlerts({ store: store.alerts, settings: () => settings, guardedFetch, clock, log })
  alerts.start()
  const add = async () => {
    const alert = alerts.make('budget.threshold_reached', { threshold: 80 })
    if (!alert) throw new Error('no alert')
    await store.alerts.add(alert)
    return alert
  }
  const advance = async (ms: number) => {
    clock.advance(ms)
    await alerts.idle()
  }
  const lines = () => {
    log.flush()
    return logged
  }
  return { alerts, store, sent, statuses, add, advance, lines }
}

describe('an alert', () => {
  it('is posted once where the receiver takes it', async () => {
    const { add, advance, sent, store } = await setUp()
    const alert = await add()
    await advance(5_000)
    await advance(600_000)
    expect(sent).toHaveLength(1)
    expect(JSON.parse(String(sent[0]?.body))).toEqual({
      type: 'budget.threshold_reached',
      timestamp: '2026-01-01T00:00:00.000Z',
      data: { threshold: 80 },
    })
    expect(sent[0]?.private_origins).toEqual(['http://10.0.0.1'])
    expect(await store.alerts.earliest()).toBeNull()
    expect(alert.alert_id).toMatch(/^alert_\w{24}$/)
  })

  it('is posted again after pauses that grow, and given up after a day', async () => {
    const { add, advance, sent, statuses, lines, store } = await setUp()
    statuses.push(...Array(100).fill(503))
    await add()
    await advance(5_000)
    await advance(5_000)
    expect(sent).toHaveLength(2)
    await advance(29_000)
    expect(sent).toHaveLength(2)
    await advance(1_000)
    expect(sent).toHaveLength(3)
    for (let hour = 0; hour < 26; hour++) await advance(3_600_000)
    expect(lines()).toContain('alert given up')
    expect(lines()).not.toContain('hidden')
    expect(await store.alerts.earliest()).toBeNull()
  })

  it('is not made where the operator has named no webhook', async () => {
    const { alerts } = await setUp({})
    expect(alerts.make('budget.threshold_reached', {})).toBeUndefined()
  })
})
