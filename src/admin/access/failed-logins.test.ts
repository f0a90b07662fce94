/** Failed logins in the audit log: seen, counted, and bounded. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import type { AuditEvent, AuditOrigin } from '../../spec/audit.ts'
import { createFailedLogins, MAX_ROWS_A_MINUTE, QUIET_MILLISECONDS } from './failed-logins.ts'

function setUp(record = async (_: AuditOrigin & AuditEvent) => {}) {
  const clock = manualClock()
  const rows: (AuditOrigin & AuditEvent)[] = []
  const logged: string[] = []
  const log = createLog({ clock, level: 'error', pretty: false, write: (text) => void logged.push(text) })
  const audit = {
    record(event: AuditOrigin & AuditEvent) {
      rows.push(event)
      return record(event)
    },
  }
  return { clock, rows, logged, failed: createFailedLogins({ audit, clock, log }) }
}

describe('failed logins', () => {
  test('leave a row with the address, and count those that follow in the next row', async () => {
    const { clock, rows, failed } = setUp()
    for (let n = 0; n < 50; n++) await failed({ address: '203.0.113.7', request_id: `req_${n}` })
    expect(rows).toMatchObject([
      { action: 'login.failed', address: '203.0.113.7', request_id: 'req_0', after: { failures: 1 } },
    ])
    clock.advance(QUIET_MILLISECONDS)
    await failed({ address: '203.0.113.7' })
    expect(rows[1]).toMatchObject({ object_id: '203.0.113.7', after: { failures: 50 } })
  })

  test('from many addresses leave a bounded number of rows, and all of them are counted', async () => {
    const { clock, rows, failed } = setUp()
    const addresses = Array.from({ length: 3_000 }, (_, n) => `10.0.${n >> 8}.${n & 255}`)
    for (const address of addresses) await failed({ address })
    expect(rows).toHaveLength(MAX_ROWS_A_MINUTE)
    clock.advance(QUIET_MILLISECONDS)
    await failed({ address: '203.0.113.7' })
    expect(rows).toHaveLength(MAX_ROWS_A_MINUTE + 1)
    // Of 2,001 forgotten addresses, 20 had a row of their own.
    expect(rows.at(-1)?.after).toEqual({ failures: 1, failures_elsewhere: 1_981 })
  })

  test('are refused all the same where the audit log cannot be written', async () => {
    const { logged, failed } = setUp(() => Promise.reject(new Error('no store')))
    await failed({ address: '203.0.113.7' })
    expect(logged.join('')).toContain('a failed login was not recorded')
  })
})
