import { expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { openStore } from '../../store/open-store.ts'
import { createAudit } from './audit.ts'

const EVENT = {
  actor: 'admin:adm_a',
  address: '192.0.2.1',
  request_id: 'req_a',
  action: 'config.apply',
  object_type: 'config',
  object_id: 'gatehouse.yaml',
  project_id: null,
  before: { level: 'info', token: 'sk-a-secret-that-nobody-may-read' },
  after: { level: 'debug', token: 'sk-another-secret-of-that-kind' },
} as const

test('a change is recorded at the time of the clock, without its secrets, and the chain is whole', async () => {
  const store = await openStore({ url: 'sqlite::memory:' })
  try {
    const clock = manualClock()
    const audit = createAudit({ store: store.audit, clock })
    await audit.record(EVENT)
    clock.advance(1_000)
    await audit.record({ ...EVENT, action: 'config.reload' })
    const { rows, next } = await audit.page({ limit: 9 })
    expect(rows.map(({ action }) => action)).toEqual(['config.reload', 'config.apply'])
    expect((rows[0]?.at_ms ?? 0) - (rows[1]?.at_ms ?? 0)).toBe(1_000)
    expect(rows[1]).toMatchObject({ actor: EVENT.actor, before: { level: 'info' }, after: { level: 'debug' } })
    expect(JSON.stringify(rows)).not.toContain('secret')
    expect(next).toBeUndefined()
    expect(await audit.verify()).toEqual({ rows: 2, last_hash: rows[0]?.hash ?? '' })
  } finally {
    await store.close()
  }
})

test('a change outside of the store leaves a row before it and one after it, and a crash in between the first', async () => {
  const store = await openStore({ url: 'sqlite::memory:' })
  try {
    const audit = createAudit({ store: store.audit, clock: manualClock() })
    const actions = async () => (await audit.page({ limit: 9 })).rows.map(({ action, after }) => [action, after])
    let during: unknown
    const result = await audit.around(EVENT, async () => {
      during = await actions() // what a process that is killed here leaves
      return { result: 7, after: { written: true } }
    })
    expect(result).toBe(7)
    expect(during).toMatchObject([['config.apply.begin', { level: 'debug' }]])
    expect((await actions())[0]).toMatchObject(['config.apply', { written: true }])
    const failing = audit.around(EVENT, () => Promise.reject(new Error('disk full')))
    expect(await failing.catch(String)).toContain('disk full')
    expect((await actions())[0]).toMatchObject(['config.apply', { failed: true }])
  } finally {
    await store.close()
  }
})

test('nothing is changed where the row before it cannot be stored', async () => {
  const store = await openStore({ url: 'sqlite::memory:' })
  const audit = createAudit({ store: store.audit, clock: manualClock() })
  await store.close()
  let isDone = false
  const work = () => {
    isDone = true
    return { result: 1, after: {} }
  }
  expect(
    await audit.around(EVENT, work).then(
      () => 'stored',
      () => 'refused',
    ),
  ).toBe('refused')
  expect(isDone).toBe(false)
})
