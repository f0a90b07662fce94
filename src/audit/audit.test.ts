import { expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { openStore } from '../store/open-store.ts'
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
