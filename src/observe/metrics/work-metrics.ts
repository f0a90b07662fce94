/** Counts what happens beside the calls: refusals, tasks, outputs, and the work of the database. */
import type { Task } from '../../spec/task.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import { WORK_METRICS } from './metric-table.ts'
import type { Counter, Histogram, Metrics } from './metrics.ts'

type EndedTask = Pick<Task, 'family' | 'provider' | 'model' | 'submit_time'> & {
  status: 'SUCCESS' | 'FAILURE'
  fail_code: string
  /** Unix seconds. `start_time` 0: generation has not begun. */
  start_time: number
  finish_time: number
}

/** What the parts of the gateway report. All of it returns at once and never throws. */
export type WorkMetrics = {
  /** A rate limit or a budget has refused a call; `scope`: the kind of what is limited. */
  refused(scope: string, limit: string): void
  taskEnded(task: EndedTask, entry: LedgerEntry): void
  fileStored(content_type: string, bytes: number): void
  storeCalled(store: string, operation: string, call: { ms: number; isOk: boolean }): void
  /** By how many milliseconds a timer was late. */
  loopDelayed(ms: number): void
}

export function createWorkMetrics(metrics: Metrics, addEntry: (entry: LedgerEntry) => void): WorkMetrics {
  const refusals = metrics.counter(WORK_METRICS.refusals)
  const ended = metrics.counter(WORK_METRICS.tasks_ended)
  const states = metrics.histogram(WORK_METRICS.task_state)
  const unknown = metrics.counter(WORK_METRICS.outcomes_unknown)
  const files = metrics.counter(WORK_METRICS.output_files)
  const bytes = metrics.counter(WORK_METRICS.output_bytes)
  const operations = metrics.histogram(WORK_METRICS.store_operations)
  const errors = metrics.counter(WORK_METRICS.store_errors)
  const delay = metrics.histogram(WORK_METRICS.loop_delay).with()
  /** By store, then by operation: both are names in the code. */
  const known = new Map<string, Map<string, { time: Histogram; errors: Counter }>>()

  function seriesOf(store: string, operation: string) {
    let ofStore = known.get(store)
    if (!ofStore) {
      ofStore = new Map()
      known.set(store, ofStore)
    }
    let series = ofStore.get(operation)
    if (!series) {
      series = { time: operations.with(store, operation), errors: errors.with(store, operation) }
      ofStore.set(operation, series)
    }
    return series
  }

  return {
    refused: (scope, limit) => refusals.with(scope, limit).add(1),
    taskEnded({ family, provider, model, status, fail_code, submit_time, start_time, finish_time }, entry) {
      ended.with(family, provider, model, status, fail_code).add(1)
      if (fail_code === 'submit_outcome_unknown') unknown.with(provider).add(1)
      const began = start_time === 0 ? finish_time : start_time
      states.with(family, provider, 'waiting').observe(Math.max(0, began - submit_time))
      if (start_time !== 0) states.with(family, provider, 'generating').observe(Math.max(0, finish_time - start_time))
      addEntry(entry)
    },
    fileStored(content_type, size) {
      const type = content_type.split(';', 1)[0] ?? ''
      files.with(type).add(1)
      bytes.with(type).add(size)
    },
    storeCalled(store, operation, { ms, isOk }) {
      const series = seriesOf(store, operation)
      series.time.observe(ms / 1000)
      if (!isOk) series.errors.add(1)
    },
    loopDelayed: (ms) => delay.observe(ms / 1000),
  }
}
