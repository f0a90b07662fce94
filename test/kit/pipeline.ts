/** A pipeline whose records a test reads. */
import type { Clock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import type { Catalogue } from '../../src/models/catalogue.ts'
import type { Call, CallRecord } from '../../src/pipeline/call.ts'
import { createPipeline } from '../../src/pipeline/pipeline.ts'
import type { RecordUsage } from '../../src/pipeline/settle.ts'
import { createRouter } from '../../src/routing/router.ts'
import type { Caller } from '../../src/spec/token.ts'
import { manualClock } from './clock.ts'

export const testCall = (caller: Caller): Call => ({
  request_id: 'req_test',
  caller,
  signal: new AbortController().signal,
  arrived: 0,
})

type PipelineOptions = { catalogue: Pick<Catalogue, 'require'>; clock?: Clock }

export function testPipeline({ catalogue, clock = manualClock() }: PipelineOptions) {
  /** Calls that ended, and what was recorded of them. */
  const finished: CallRecord[] = []
  const recorded: Parameters<RecordUsage>[0][] = []
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const pipeline = createPipeline({
    catalogue,
    recordUsage: (use) => void recorded.push(use),
    router: createRouter({ clock, log }),
    subscribers: [{ finished: (record) => void finished.push(record) }],
    clock,
    log,
  })
  return { pipeline, finished, recorded }
}
