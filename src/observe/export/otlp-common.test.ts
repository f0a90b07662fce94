import { describe, expect, it } from 'bun:test'
import { ExportResultCode } from '@opentelemetry/core'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { createExportQueue } from './otlp-common.ts'

const LIMITS = { max_queue: 200, max_batch: 150, delay_ms: 1_000, timeout_ms: 10_000 }

describe('an export queue', () => {
  it('sends a batch in requests of at most 64 items, and counts those that were taken', async () => {
    const clock = manualClock()
    const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
    const sizes: number[] = []
    let isShutDown = false
    const queue = createExportQueue<number>(
      {
        export(items, done) {
          sizes.push(items.length)
          done({ code: items.includes(70) ? ExportResultCode.FAILED : ExportResultCode.SUCCESS })
        },
        async shutdown() {
          isShutDown = true
        },
      },
      { name: 'spans', limits: LIMITS, clock, log },
    )
    for (let item = 0; item < 150; item++) queue.add(item, 1)
    await queue.close({ deadline_ms: 1_000 })
    expect(sizes).toEqual([64, 64, 22])
    expect(queue.counts()).toEqual({ exported: 86, failed: 64, dropped: 0, queued: 0 })
    queue.add(150, 1)
    expect(queue.counts()).toMatchObject({ dropped: 1 })
    expect(isShutDown).toBe(true)
  })
})
