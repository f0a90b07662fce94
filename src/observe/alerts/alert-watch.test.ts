import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { LedgerHealth } from '../../calls/recording/ledger.ts'
import { createTargetState, type TargetState } from '../../calls/routing/target-state.ts'
import type { AlertsConfig } from '../../config/schema/alerts-schema.ts'
import { createLog } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Model } from '../../spec/model.ts'
import type { UsageSum } from '../../store/ledger/ledger-store.ts'
import { createAlertWatch } from './alert-watch.ts'
import type { RaisedAlert } from './alerts.ts'

const HEALTHY: LedgerHealth = { queued: 0, lag_ms: 0, spool_bytes: 0, lost: 0, is_store_away: false }
const NOW = 1_767_225_600 // 2026-01-01

function setUp(settings: AlertsConfig = {}) {
  const clock = manualClock()
  const raised: RaisedAlert[] = []
  const world = {
    states: [] as TargetState[],
    health: { ...HEALTHY },
    trouble: undefined as GatewayError | undefined,
    models: [] as Model[],
    rows: [] as UsageSum[],
    free: {} as Record<string, number>,
  }
  let logged = ''
  const log = createLog({
    clock,
    level: 'warn',
    pretty: false,
    write: (text) => {
      logged += text
    },
  })
  const watch = createAlertWatch({
    alerts: { raise: (alert) => void raised.push(alert) },
    router: { states: () => world.states },
    ledger: { health: () => world.health, usage: async () => ({ from: 0, to: 0, period: 60, rows: world.rows }) },
    ready: async () => {
      if (world.trouble) throw world.trouble
    },
    models: () => world.models,
    directories: ['/data', '/outputs'],
    settings: () => settings,
    freeShare: async (directory) => world.free[directory],
    clock,
    log,
  })
  watch.start()
  /** One check, `seconds` later. */
  const check = async (seconds = 30) => {
    clock.advance(seconds * 1000)
    await watch.idle()
    await Promise.resolve()
    return raised.splice(0)
  }
  const lines = () => {
    log.flush()
    return logged
  }
  return { watch, clock, world, raised, check, lines }
}

const stateOf = (id: string, clock: { steady(): number }, more: Partial<TargetState> = {}): TargetState => ({
  ...createTargetState(id),
  ...(more.refused_until === undefined ? more : { ...more, refused_until: clock.steady() + more.refused_until }),
})

describe('the watch', () => {
  it('raises nothing while all is well', async () => {
    const { check, world, clock } = setUp()
    world.states = [stateOf('v/m', clock)]
    world.free = { '/data': 0.5, '/outputs': 0.05 }
    expect(await check()).toEqual([])
    expect(await check(3_600)).toEqual([])
  })

  it('raises a target that has failed for five minutes, not one that has for less, and not after it recovers', async () => {
    const { check, world, clock } = setUp()
    const state = stateOf('v/m#second', clock, { ejections: 1 })
    world.states = [state]
    expect(await check()).toEqual([])
    expect(await check(299)).toEqual([])
    expect(await check(1)).toEqual([])
    const [alert] = await check(30)
    expect(alert).toMatchObject({
      type: 'breaker.open',
      key: 'breaker.open v/m#second',
      data: { target: 'v/m', key: 'second' },
    })
    state.ejections = 0
    expect(await check()).toEqual([])
    state.ejections = 2
    expect(await check()).toEqual([])
  })

  it('takes the minutes of a breaker from the settings', async () => {
    const { check, world, clock } = setUp({ breaker_open_minutes: 0.5 })
    world.states = [stateOf('v/m', clock, { ejections: 1 })]
    expect(await check()).toEqual([])
    expect(await check()).toHaveLength(1)
  })

  it('raises a refused key once for the provider, with its name and never the key', async () => {
    const { check, world, clock } = setUp()
    world.states = [
      stateOf('v/one#second', clock, { refused_until: 300_000 }),
      stateOf('v/two#second', clock, { refused_until: 300_000 }),
      stateOf('w/one', clock, { refused_until: 29_000 }),
    ]
    const keys = (await check()).map(({ key }) => key)
    expect(new Set(keys)).toEqual(new Set(['provider.key_refused v second']))
  })

  it('raises a certificate that is not accepted until the target answers, and no other connection error', async () => {
    const { check, world, clock } = setUp()
    const failing = (error: GatewayError, last_ok_at = Number.NEGATIVE_INFINITY) => [
      stateOf('v/m', clock, { last_error: { at: clock.steady(), error }, last_ok_at }),
    ]
    const unreachable = (code: string) => new GatewayError('upstream_unreachable', `No connection to v (${code}).`)
    for (const error of [
      ...['ECONNREFUSED', 'ENOTFOUND', 'EPROTO'].map(unreachable),
      new GatewayError('bad_upstream_response', '(CERT_HAS_EXPIRED)'),
    ]) {
      world.states = failing(error)
      expect(await check()).toEqual([])
    }
    for (const code of ['CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID']) {
      world.states = failing(unreachable(code))
      expect(await check()).toMatchObject([
        { type: 'provider.certificate_invalid', data: { provider: 'v', target: 'v/m', code } },
      ])
    }
    world.states = failing(unreachable('CERT_HAS_EXPIRED'), clock.steady() + 1)
    expect(await check()).toEqual([])
  })

  it('raises a ledger that is delayed for a minute, and entries that were lost', async () => {
    const { check, world } = setUp()
    world.health.is_store_away = true
    expect(await check()).toEqual([])
    expect(await check()).toEqual([])
    expect((await check()).map(({ type }) => type)).toEqual(['ledger.delayed'])
    world.health = { ...HEALTHY, lost: 3 }
    expect(await check()).toMatchObject([{ type: 'ledger.entries_lost', data: { lost: 3 } }])
    world.health.lost = 4
    expect(await check()).toMatchObject([{ type: 'ledger.entries_lost', data: { lost: 1 } }])
    expect(await check()).toEqual([])
  })

  it('raises a storage that is unavailable for a minute', async () => {
    const { check, world } = setUp()
    world.trouble = new GatewayError('storage_unavailable', 'the database cannot be written')
    expect(await check()).toEqual([])
    expect(await check()).toEqual([])
    expect(await check()).toMatchObject([
      { type: 'storage.unavailable', message: 'The gateway is not ready: the database cannot be written.' },
    ])
    world.trouble = undefined
    expect(await check()).toEqual([])
  })

  it('raises a disk with less than five per cent free, or less than the settings say', async () => {
    const { check, world } = setUp()
    world.free = { '/data': 0.05, '/outputs': 0.0499 }
    expect(await check()).toMatchObject([{ type: 'disk.low', data: { directory: '/outputs', free_percent: 5 } }])
    const strict = setUp({ disk_free_percent: 10 })
    strict.world.free = { '/data': 0.0999, '/outputs': 0.1 }
    expect((await strict.check()).map(({ key }) => key)).toEqual(['disk.low /data'])
  })

  it('raises models in use that end within 30 days, with who uses them, and looks every six hours', async () => {
    const { check, world, clock } = setUp()
    const day = 86_400
    const now = Math.floor(clock.now() / 1000)
    expect(now).toBe(NOW)
    const model = (id: string, more: Partial<Model>): Model =>
      ({ id, object: 'model', created: 0, owned_by: 'v', ...more }) as Model
    world.models = [
      model('soon', { retired_at: now + 30 * day }),
      model('later', { retired_at: now + 32 * day }),
      model('unused', { deprecated_at: now + day }),
      model('long ago', { deprecated_at: now - 40 * day }),
      model('past', { deprecated_at: now - day }),
    ]
    const used = (name: string, token_id: string, requests: number) => ({ model: name, token_id, requests }) as UsageSum
    world.rows = [
      used('soon', 'tok_1', 2),
      used('soon', 'tok_2', 5),
      used('later', 'tok_1', 1),
      used('past', 'tok_1', 1),
      used('long ago', 'tok_1', 1),
    ]
    const alerts = await check()
    expect(alerts.map(({ message }) => message)).toEqual([
      'The model soon will be retired on 2026-01-31, and is in use.',
      'The model past was deprecated on 2025-12-31, and is in use.',
    ])
    expect(alerts[0]?.data).toEqual({
      model: 'soon',
      retired_at: '2026-01-31',
      users: [
        { token_id: 'tok_2', requests: 5 },
        { token_id: 'tok_1', requests: 2 },
      ],
    })
    expect(await check(21_500)).toEqual([])
    expect(await check(300)).toHaveLength(2)
  })

  it('goes on after a check that failed', async () => {
    const { check, world, lines } = setUp()
    Object.defineProperty(world, 'models', {
      get: () => {
        throw new Error('broken')
      },
      configurable: true,
    })
    expect(await check()).toEqual([])
    expect(lines()).toContain('the check for alerts failed')
    world.free = { '/data': 0 }
    expect(await check()).toHaveLength(1)
  })
})
