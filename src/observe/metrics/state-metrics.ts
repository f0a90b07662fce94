/** Metrics that are read for each scrape: the state of targets, budgets, the ledger, tasks and the process. */
import { type BudgetAccount, usedOf } from '../../calls/budgets/budget-accounts.ts'
import type { LedgerHealth } from '../../calls/recording/ledger.ts'
import type { Router } from '../../calls/routing/router.ts'
import { avoidedBecause, type TargetState } from '../../calls/routing/target-state.ts'
import type { Clock } from '../../kit/clock.ts'
import { descriptorLimit, openDescriptors } from '../../kit/descriptors.ts'
import type { ExportCounts } from '../export/otlp-settings.ts'
import { STATE_METRICS as TABLE } from './metric-table.ts'
import type { MetricDefinition, Metrics, Sample } from './metrics.ts'

/** What is read. Each function returns what is known now. */
export type ObservedState = {
  version: string
  /** The engine of the database. */
  engine: string
  router: Pick<Router, 'states'>
  limits: { waiting(): number; budgets(): Iterable<BudgetAccount> }
  ledger: { health(): LedgerHealth }
  /** Reads the database. */
  tasks: { health(): Promise<{ unfinished: number; oldest_seconds: number; lag_seconds: number }> }
  /** `counts` reads the database. */
  batches: { counts(): Promise<{ status: string; batches: number }[]>; calls(): number }
  requests: { open(): number; sockets(): number; bytes(): number }
  /** By signal, such as `spans`; empty where nothing is exported. */
  exports(): Readonly<Record<string, ExportCounts>>
  currency(): string
  clock: Clock
}

const STATES = ['available', 'ejected', 'probing', 'rate limited', 'key refused', 'unhealthy', 'drained', 'disabled']
/** The answer of the database is used for so long: several scrapers ask it as often as one. */
const TASKS_MILLISECONDS = 5_000
const NANO = 1e9
/** A refusal is shown for so long, so that no scrape misses it. */
const REFUSING_MILLISECONDS = 300_000

export function collectState(metrics: Metrics, state: ObservedState, read_errors: () => number): void {
  const one = (definition: MetricDefinition, read: () => number | undefined) =>
    metrics.collect(definition, () => {
      const value = read()
      return value === undefined ? [] : [{ value }]
    })
  const { requests, limits, ledger, version, engine } = state
  metrics.collect(TABLE.info, () => [{ labels: [version, engine], value: 1 }])
  collectTargets(metrics, state)
  collectBudgets(metrics, state)
  one(TABLE.limit_waiting, limits.waiting)
  one(TABLE.ledger_queued, () => ledger.health().queued)
  one(TABLE.ledger_lag, () => ledger.health().lag_ms / 1000)
  one(TABLE.ledger_spool, () => ledger.health().spool_bytes)
  one(TABLE.ledger_away, () => Number(ledger.health().is_store_away))
  one(TABLE.ledger_lost, () => ledger.health().lost)
  collectTasks(metrics, state)
  one(TABLE.batch_calls, state.batches.calls)
  one(TABLE.open_requests, requests.open)
  one(TABLE.open_sockets, requests.sockets)
  one(TABLE.bytes, requests.bytes)
  metrics.collect(TABLE.exported, () =>
    Object.entries(state.exports()).flatMap(([signal, { exported, failed, dropped }]) => [
      { labels: [signal, 'exported'], value: exported },
      { labels: [signal, 'failed'], value: failed },
      { labels: [signal, 'dropped'], value: dropped },
    ]),
  )
  metrics.collect(TABLE.export_queue, () =>
    Object.entries(state.exports()).map(([signal, { queued }]) => ({ labels: [signal], value: queued })),
  )
  metrics.collect(TABLE.overflows, () => [...metrics.overflows()].map(([label, value]) => ({ labels: [label], value })))
  one(TABLE.failed, read_errors)
  collectProcess(one, state.clock)
}

type SinkHealth = { sink: string; queued: number; written: number; dropped: number }

/** `store`: the request log in the database. The others are named by their place in the configuration. */
export function collectRequestLog(
  metrics: Metrics,
  health: () => { sinks: readonly SinkHealth[]; suppressed: number },
): void {
  metrics.collect(TABLE.rows_queue, () => health().sinks.map(({ sink, queued }) => ({ labels: [sink], value: queued })))
  metrics.collect(TABLE.rows, () =>
    health().sinks.flatMap(({ sink, written, dropped }) => [
      { labels: [sink, 'written'], value: written },
      { labels: [sink, 'dropped'], value: dropped },
    ]),
  )
  metrics.collect(TABLE.rows_suppressed, () => [{ value: health().suppressed }])
}

export function collectContents(
  metrics: Metrics,
  health: () => { written: number; dropped: number; characters: number },
): void {
  metrics.collect(TABLE.contents_queue, () => [{ value: health().characters }])
  metrics.collect(TABLE.contents, () => {
    const { written, dropped } = health()
    return [
      { labels: ['written'], value: written },
      { labels: ['dropped'], value: dropped },
    ]
  })
}

function collectTargets(metrics: Metrics, { router, clock }: ObservedState): void {
  metrics.collect(TABLE.target_state, function* (): Iterable<Sample> {
    const now = clock.steady()
    for (const target of router.states()) {
      const current = avoidedBecause(target, now) ?? 'available'
      for (const state of STATES) {
        yield { labels: [...labelsOf(target), state.replace(' ', '_')], value: state === current ? 1 : 0 }
      }
    }
  })
  metrics.collect(TABLE.target_open, function* (): Iterable<Sample> {
    for (const target of router.states()) yield { labels: labelsOf(target), value: target.open }
  })
}

/** `provider/model#key`; a model may contain slashes. */
function labelsOf({ id }: TargetState): [provider: string, upstream_model: string, key: string] {
  const hash = id.lastIndexOf('#')
  const [target, key] = hash === -1 ? [id, ''] : [id.slice(0, hash), id.slice(hash + 1)]
  const slash = target.indexOf('/')
  return [target.slice(0, slash), target.slice(slash + 1), key]
}

function collectBudgets(metrics: Metrics, { limits, currency, clock }: ObservedState): void {
  const read = (amountOf: (account: BudgetAccount) => number) =>
    function* (): Iterable<Sample> {
      const now = clock.now()
      for (const account of limits.budgets()) {
        const { scope_key, start_ms, end_ms } = account.name
        const [scope = '', owner = ''] = scope_key.split(':', 2)
        // End users are no labels: there is no bound on them, and they are people.
        if (scope === 'user' || now < start_ms || now >= end_ms) continue
        yield { labels: [scope, owner, account.budget.window, currency()], value: amountOf(account) }
      }
    }
  metrics.collect(
    TABLE.budget_limit,
    read(({ limit, credit }) => (limit + credit) / NANO),
  )
  metrics.collect(
    TABLE.budget_used,
    read((account) => usedOf(account) / NANO),
  )
  metrics.collect(
    TABLE.budget_held,
    read(({ held }) => held / NANO),
  )
  metrics.collect(
    TABLE.budget_refusing,
    read(({ refused_at }) => Number(clock.steady() - refused_at < REFUSING_MILLISECONDS)),
  )
}

function collectTasks(metrics: Metrics, { tasks, batches, clock }: ObservedState): void {
  const health = remembered(tasks.health, clock)
  const counts = remembered(batches.counts, clock)
  metrics.collect(TABLE.tasks_unfinished, async () => [{ value: (await health()).unfinished }])
  metrics.collect(TABLE.tasks_oldest, async () => [{ value: (await health()).oldest_seconds }])
  metrics.collect(TABLE.tasks_lag, async () => [{ value: (await health()).lag_seconds }])
  metrics.collect(TABLE.batches_unfinished, async () =>
    (await counts()).map(({ status, batches: value }) => ({ labels: [status], value })),
  )
}

/** The same answer for some seconds. */
function remembered<T>(read: () => Promise<T>, clock: Clock): () => Promise<T> {
  let known: { at: number; answer: Promise<T> } | undefined
  return () => {
    const now = clock.steady()
    if (known && now - known.at < TASKS_MILLISECONDS) return known.answer
    const asked = { at: now, answer: read() }
    known = asked
    asked.answer.catch(() => {
      if (known === asked) known = undefined
    })
    return asked.answer
  }
}

function collectProcess(
  one: (definition: MetricDefinition, read: () => number | undefined) => void,
  clock: Clock,
): void {
  const started = clock.now() / 1000 - process.uptime()
  one(TABLE.cpu, () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  one(TABLE.started, () => started)
  one(TABLE.resident, () => process.memoryUsage.rss())
  one(TABLE.heap, () => process.memoryUsage().heapUsed)
  one(TABLE.open_fds, openDescriptors)
  const limit = descriptorLimit()
  one(TABLE.max_fds, () => limit)
}
