import { afterEach, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { AlertsConfig } from '../../config/schema/alerts-schema.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import { createLog } from '../../kit/log.ts'
import { openStore } from '../../store/open-store.ts'
import type { Store } from '../../store/store.ts'
import { createAlerts } from './alerts.ts'

const REACHED = {
  type: 'budget.threshold_reached',
  message: 'The budget of the token "a" has reached 80 %.',
  data: { threshold: 80 },
} as const

type Mutable = AlertsConfig

const stores: Store[] = []
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})

async function setUp(settings: Mutable = { webhook: { url: 'http://10.0.0.1/hook?key=hidden' } }) {
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
  const log = createLog({
    clock,
    level: 'info',
    pretty: false,
    write: (text) => {
      logged += text
    },
  })
  const parts = { store: store.alerts, history: store.alertHistory, settings: () => settings, guardedFetch, clock, log }
  const alerts = createAlerts(parts)
  alerts.start()
  /** Of another process on the same store, which delivers nothing. */
  const another = () => createAlerts(parts)
  const unavailable = () =>
    createAlerts({ ...parts, store: { ...store.alerts, addOnce: () => Promise.reject(new Error('no database')) } })
  const add = async () => {
    const made = alerts.make(REACHED)
    await store.alerts.add(made)
    return made
  }
  const advance = async (ms: number) => {
    clock.advance(ms)
    await alerts.idle()
  }
  const lines = () => {
    log.flush()
    return logged
  }
  return { alerts, another, unavailable, settings, store, sent, statuses, add, advance, lines }
}

describe('an alert', () => {
  it('is posted once where the receiver takes it', async () => {
    const { add, advance, sent, store } = await setUp()
    const [alert] = await add()
    await advance(5_000)
    await advance(600_000)
    expect(sent).toHaveLength(1)
    expect(JSON.parse(String(sent[0]?.body))).toEqual({
      type: 'budget.threshold_reached',
      timestamp: '2026-01-01T00:00:00.000Z',
      message: 'The budget of the token "a" has reached 80 %.',
      data: { threshold: 80 },
    })
    expect(sent[0]?.private_origins).toEqual(['http://10.0.0.1'])
    expect(await store.alerts.earliest()).toBeNull()
    expect(alert?.alert_id).toMatch(/^alert_\w{24}$/)
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

  it('is not made where the operator has named no receiver', async () => {
    const { alerts } = await setUp({})
    expect(alerts.make(REACHED)).toEqual([])
  })

  it('is made for each receiver, and only of the events that the operator names', async () => {
    const url = 'http://10.0.0.1/hook'
    const { alerts } = await setUp({ webhook: { url }, slack: { url }, events: ['disk.low'] })
    expect(alerts.make(REACHED)).toEqual([])
    expect(alerts.make({ ...REACHED, type: 'disk.low' }).map(({ channel }) => channel)).toEqual(['webhook', 'slack'])
  })

  it('goes to Slack as text in which names are no markup', async () => {
    const { alerts, advance, sent, store } = await setUp({
      slack: { url: 'https://hooks.example.com/services/T0/B0/secret' },
    })
    const data = { model: '<!channel> & co', users: [{ token_id: 'tok_1', requests: 3 }], key: undefined }
    await store.alerts.add(alerts.make({ ...REACHED, data }))
    await advance(5_000)
    expect(JSON.parse(String(sent[0]?.body))).toEqual({
      text: [
        '*Gatehouse: The budget of the token "a" has reached 80 %.*',
        'model: &lt;!channel&gt; &amp; co',
        'users:',
        '- token_id tok_1, requests 3',
        'budget.threshold_reached, 2026-01-01T00:00:00.000Z',
      ].join('\n'),
    })
  })

  it('is dropped where its channel is no longer configured', async () => {
    const { add, advance, sent, settings, store } = await setUp()
    await add()
    delete settings.webhook
    await advance(5_000)
    expect(sent).toHaveLength(0)
    expect(await store.alerts.earliest()).toBeNull()
  })
})

describe('a raised alert', () => {
  const raised = { ...REACHED, key: 'a key', again_seconds: 3_600 }

  it('is sent once in its time, whatever process raises it', async () => {
    const { alerts, advance, sent, store, another } = await setUp()
    const other = another()
    for (const one of [alerts, alerts, other]) one.raise(raised)
    await other.idle()
    await advance(5_000)
    expect(sent).toHaveLength(1)
    await advance(3_594_000)
    for (const one of [alerts, other]) one.raise(raised)
    await other.idle()
    await advance(1_000)
    expect(sent).toHaveLength(1)
    for (const one of [alerts, other]) one.raise(raised)
    await other.idle()
    await advance(5_000)
    expect(sent).toHaveLength(2)
    expect(await store.alerts.earliest()).toBeNull()
  })

  it('is sent at once while the store is unavailable', async () => {
    const { sent, lines, unavailable } = await setUp()
    const alerts = unavailable()
    alerts.raise(raised)
    await alerts.idle()
    expect(sent).toHaveLength(1)
    expect(lines()).toContain('an alert could not be stored')
    alerts.raise(raised)
    await alerts.idle()
    expect(sent).toHaveLength(1)
  })
})
