import { afterAll, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { startCollector } from '../../../test/kit/collector.ts'
import { createLog } from '../../kit/log.ts'
import { createOtlpLogs } from './otlp-logs.ts'
import { otlpSettings } from './otlp-settings.ts'

const collector = startCollector()
afterAll(collector.stop)

function build() {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const { settings } = otlpSettings({ endpoint: collector.url, logs: true }, {})
  if (!settings?.logs) throw new Error('no endpoint of logs')
  const common = { settings, version: '1', instance_id: 'gw_1', clock, log }
  return createOtlpLogs({ ...common, endpoint: settings.logs, event_name: 'gatehouse.request' })
}

describe('a row', () => {
  it('is a log record with its members as attributes, in the trace that it names', async () => {
    const logs = build()
    const trace_id = 'ab'.repeat(16)
    logs.add([
      {
        at_ms: 1_700_000_000_123,
        trace_id,
        error: null,
        request_id: 'req_1',
        cost: 12,
        tags: ['a', 'b'],
        detail: { attempts: [{ target: 'x/y', ms: 1.5, error: null }] },
      },
      { at_ms: 1_700_000_000_124, error: 'upstream_error' },
    ])
    await logs.close({ deadline_ms: 1_000 })
    expect(logs.counts()).toEqual({ exported: 2, dropped: 0, failed: 0, queued: 0 })
    const [first, second] = collector.logs
    expect(first).toMatchObject({
      body: 'gatehouse.request',
      severity: 'INFO',
      trace_id,
      time_ms: 1_700_000_000_123,
      resource: { 'service.name': 'gatehouse', 'service.instance.id': 'gw_1' },
    })
    expect(first?.attributes).toEqual({
      request_id: 'req_1',
      cost: 12,
      tags: ['a', 'b'],
      detail: { attempts: [{ target: 'x/y', ms: 1.5 }] },
    })
    expect(second).toMatchObject({ severity: 'ERROR', trace_id: '', attributes: { error: 'upstream_error' } })
  })
})
