/** A pipeline whose records a test reads. */
import type { Call, CallRecord } from '../../src/calls/call.ts'
import { createPipeline } from '../../src/calls/pipeline.ts'
import { createRouter } from '../../src/calls/routing/router.ts'
import type { Clock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import type { Catalogue } from '../../src/models/catalogue.ts'
import type { Caller } from '../../src/spec/token.ts'
import type { LedgerEntry } from '../../src/store/ledger/ledger-entry.ts'
import { manualClock } from './clock.ts'

export const testCall = (caller: Caller): Call => ({
  request_id: 'req_test',
  caller,
  signal: new AbortController().signal,
  arrived: 0,
})

/** The part of an entry that most tests compare. */
export const useOf = ({ token_id, model, units, errors, estimated }: LedgerEntry) => ({
  token_id,
  model,
  input_tokens: units.input_tokens,
  output_tokens: units.output_tokens,
  error: errors > 0,
  estimated: estimated > 0,
})

type PipelineOptions = { catalogue: Pick<Catalogue, 'require'>; clock?: Clock }

export function testPipeline({ catalogue, clock = manualClock() }: PipelineOptions) {
  /** Calls that ended, and what was recorded of them. */
  const finished: CallRecord[] = []
  const recorded: ReturnType<typeof useOf>[] = []
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const pipeline = createPipeline({
    catalogue,
    recordUsage: (entries) => void recorded.push(...entries.map(useOf)),
    router: createRouter({ clock, log }),
    subscribers: [{ finished: (record) => void finished.push(record) }],
    clock,
    log,
  })
  return { pipeline, finished, recorded }
}
