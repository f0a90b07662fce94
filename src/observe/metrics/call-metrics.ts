/**
 * Counts requests and calls once they have ended. On the path of calls: the series of a call are found by the strings that
 * it has anyway, and then only added to.
 */
import type { CallRecord } from '../../calls/call.ts'
import type { Attempt } from '../../calls/routing/attempt.ts'
import type { FinishedRequest } from '../../http/context.ts'
import type { Target } from '../../providers/provider.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { EndedRequest, Recorder } from '../requests/requests.ts'
import { isServing, operationOf, providerName } from '../traces/call-attributes.ts'
import { CALL_METRICS } from './metric-table.ts'
import type { Counter, Histogram, Metrics } from './metrics.ts'

type CallMetricsParts = { metrics: Metrics; currency(): string }

type CallMetrics = {
  record: Recorder
  /** An entry that does not belong to a call, such as that of a task. */
  entry(entry: LedgerEntry): void
}

/** Of calls that are alike: one look-up for all. */
type CallSeries = {
  duration: Histogram
  first_token: Histogram
  per_token: Histogram
  input: Histogram
  output: Histogram
}

type MoneySeries = {
  input: Counter
  output: Counter
  cached: Counter
  written: Counter
  reasoning: Counter
  charged: Counter
  cost: Counter
  unpriced: Counter
  requests: Counter
  errors: Counter
}

type EndedCall = EndedRequest & { readonly record: CallRecord }

type OwnerSeries = { calls: Counter; charged: Counter }

type TargetSeries = { served: Counter; duration: Histogram; key: string }

/** What was found is forgotten beyond this: models and tokens may be many. */
const MAX_CACHED = 5_000

/** Series by a path of strings. */
type Node<Value> = { next: Map<string, Node<Value>>; value: Value | undefined }
const newNode = <Value>(): Node<Value> => ({ next: new Map(), value: undefined })

function child<Value>(node: Node<Value>, name: string): Node<Value> {
  const found = node.next.get(name)
  if (found) return found
  const made = newNode<Value>()
  node.next.set(name, made)
  return made
}

export function createCallMetrics({ metrics, currency }: CallMetricsParts): CallMetrics {
  const duration = metrics.histogram(CALL_METRICS.duration)
  const first_token = metrics.histogram(CALL_METRICS.first_token)
  const per_token = metrics.histogram(CALL_METRICS.per_token)
  const token_usage = metrics.histogram(CALL_METRICS.token_usage)
  const requests = metrics.counter(CALL_METRICS.requests)
  const tokens = metrics.counter(CALL_METRICS.tokens)
  const charged = metrics.counter(CALL_METRICS.charged)
  const cost = metrics.counter(CALL_METRICS.cost)
  const entries = metrics.counter(CALL_METRICS.entries)
  const ledger_requests = metrics.counter(CALL_METRICS.ledger_requests)
  const ledger_errors = metrics.counter(CALL_METRICS.ledger_errors)
  const unpriced = metrics.counter(CALL_METRICS.unpriced)
  const project_calls = metrics.counter(CALL_METRICS.project_calls)
  const project_charged = metrics.counter(CALL_METRICS.project_charged)
  const token_calls = metrics.counter(CALL_METRICS.token_calls)
  const token_charged = metrics.counter(CALL_METRICS.token_charged)
  const attempts = metrics.counter(CALL_METRICS.attempts)
  const attempt_duration = metrics.histogram(CALL_METRICS.attempt_duration)
  const next = metrics.counter(CALL_METRICS.next)
  const cache = metrics.counter(CALL_METRICS.cache)
  const guard_checks = metrics.counter(CALL_METRICS.guard_checks)
  const similarity = metrics.histogram(CALL_METRICS.similarity).with()
  const queue_wait = metrics.histogram(CALL_METRICS.queue_wait).with()

  let calls = newNode<CallSeries>()
  let money = newNode<MoneySeries>()
  let owners = newNode<OwnerSeries>()
  const http = newNode<Counter>()
  const kinds = new Map<string, Counter>()
  let targets = new WeakMap<Target, TargetSeries>()
  let cached = 0

  /** Before something is added to what is cached. */
  function bound(): void {
    if (++cached < MAX_CACHED) return
    cached = 0
    calls = newNode()
    money = newNode()
    owners = newNode()
    targets = new WeakMap()
  }

  function callSeries(record: CallRecord, error_type: string): CallSeries {
    const { family, model = '', requested = model } = record
    const provider = record.cache === 'hit' ? undefined : record.target?.provider
    let node = child(calls, family)
    node = child(node, provider?.id ?? '')
    node = child(node, requested)
    node = child(node, model)
    node = child(node, error_type)
    if (node.value) return node.value
    bound()
    const labels = [operationOf(family), provider ? providerName(provider) : '', requested, model]
    node.value = {
      duration: duration.with(...labels, error_type),
      first_token: first_token.with(...labels),
      per_token: per_token.with(...labels),
      input: token_usage.with(...labels, 'input'),
      output: token_usage.with(...labels, 'output'),
    }
    return node.value
  }

  function moneySeries({ provider, upstream_model, model }: LedgerEntry): MoneySeries {
    const node = child(child(child(money, provider), upstream_model), model)
    if (node.value) return node.value
    bound()
    const target = [provider, upstream_model, model] as const
    node.value = {
      input: tokens.with(...target, 'input'),
      output: tokens.with(...target, 'output'),
      cached: tokens.with(...target, 'cached'),
      written: tokens.with(...target, 'cache_write'),
      reasoning: tokens.with(...target, 'reasoning'),
      charged: charged.with(...target, currency()),
      cost: cost.with(...target, currency()),
      unpriced: unpriced.with(...target),
      requests: ledger_requests.with(model),
      errors: ledger_errors.with(model),
    }
    return node.value
  }

  function addEntry(entry: LedgerEntry): void {
    const { units, amount, kind } = entry
    let ofKind = kinds.get(kind)
    if (!ofKind) {
      ofKind = entries.with(kind)
      kinds.set(kind, ofKind)
    }
    ofKind.value++
    const series = moneySeries(entry)
    series.requests.value += entry.requests
    series.errors.value += entry.errors
    series.input.value += units.input_tokens
    series.output.value += units.output_tokens
    if (units.cached_tokens) series.cached.value += units.cached_tokens
    const written = (units.cache_write_tokens ?? 0) + (units.cache_write_1h_tokens ?? 0)
    if (written > 0) series.written.value += written
    if (units.reasoning_tokens) series.reasoning.value += units.reasoning_tokens
    // Whole nano-units are added up, so that the sum is that of the ledger.
    if (amount !== null) series.charged.value += amount
    if (entry.cost !== null) series.cost.value += entry.cost
    if (amount === null || entry.cost === null) series.unpriced.value++
  }

  function projectSeries(project_id: string): OwnerSeries {
    const project = child(child(owners, 'project'), project_id)
    if (!project.value) {
      bound()
      project.value = { calls: project_calls.with(project_id), charged: project_charged.with(project_id, currency()) }
    }
    return project.value
  }

  function tokenSeries(token_id: string): OwnerSeries {
    const token = child(child(owners, 'token'), token_id)
    if (!token.value) {
      bound()
      token.value = { calls: token_calls.with(token_id), charged: token_charged.with(token_id, currency()) }
    }
    return token.value
  }

  function targetSeries(target: Target): TargetSeries {
    const found = targets.get(target)
    if (found) return found
    const { provider, model, key = '' } = target
    const made = {
      served: attempts.with(provider.id, model, key, 'served', ''),
      duration: attempt_duration.with(provider.id, model),
      key,
    }
    targets.set(target, made)
    return made
  }

  function addAttempt(attempt: Attempt, ended: EndedCall): void {
    const { target, error, is_lost, ms } = attempt
    const series = targetSeries(target)
    if (ms !== undefined && error === undefined && !is_lost) series.duration.observe(ms / 1000)
    const { outcome, error_type } = outcomeOf(attempt, ended)
    const { provider, model } = target
    if (outcome === 'served') series.served.value++
    else attempts.with(provider.id, model, series.key, outcome, error_type).value++
    if (attempt.next !== undefined) next.with(provider.id, model, attempt.next).value++
  }

  function addRequest({ context, status, outcome }: FinishedRequest): void {
    const { request, route = '' } = context
    let node = child(http, route)
    node = child(node, request.method)
    node = child(node, STATUS[status] ?? String(status))
    node = child(node, outcome)
    node.value ??= requests.with(request.method, route, String(status), outcome)
    node.value.value++
  }

  function addCall(ended: EndedCall): void {
    const { record, request, at, left } = ended
    const series = callSeries(record, errorTypeOf(ended))
    const total_ms = request ? request.total_ms : at - record.call.arrived
    series.duration.observe(total_ms / 1000)
    const { caller } = record.call
    const project = projectSeries(caller.project_id ?? '')
    const token = tokenSeries(caller.token_id)
    project.calls.value++
    token.calls.value++
    if (record.cache) cache.with(record.requested ?? record.model ?? '', record.cache).value++
    if (record.guards) for (const { name, on, outcome } of record.guards) guard_checks.with(name, on, outcome).value++
    if (record.cache_similarity !== undefined) similarity.observe(record.cache_similarity)
    if (record.queued_ms !== undefined) queue_wait.observe(record.queued_ms / 1000)
    for (const attempt of record.attempts) addAttempt(attempt, ended)
    const { entries } = record
    if (!entries) return
    for (const entry of entries) {
      addEntry(entry)
      if (!entry.amount) continue
      project.charged.value += entry.amount
      token.charged.value += entry.amount
    }
    const units = entries[0]?.units
    if (!units) return
    if (units.input_tokens > 0) series.input.observe(units.input_tokens)
    if (units.output_tokens > 0) series.output.observe(units.output_tokens)
    if (!record.is_stream || !request) return
    const { first_byte_ms, stream } = request.context.note
    if (!stream || first_byte_ms === undefined) return
    series.first_token.observe(first_byte_ms / 1000)
    if (units.output_tokens > 1 && record.error === undefined && left === undefined)
      series.per_token.observe((total_ms - first_byte_ms) / 1000 / (units.output_tokens - 1))
  }

  return {
    record(ended, { each }) {
      each(ended, (one) => {
        if (one.request) addRequest(one.request)
        if (isCall(one)) addCall(one)
      })
    },
    entry: addEntry,
  }
}

/** The texts of statuses, so that none is made for each request. */
const STATUS: readonly string[] = Array.from({ length: 600 }, (_, status) => String(status))

const isCall = (ended: EndedRequest): ended is EndedCall => ended.record !== undefined

/** Of a call whose client has left, whatever its provider did then. */
const errorTypeOf = ({ record, left }: EndedCall): string => left || (record.error ?? '')

function outcomeOf(attempt: Attempt, ended: EndedCall): { outcome: string; error_type: string } {
  if (attempt.is_lost) return { outcome: 'lost', error_type: '' }
  const { record } = ended
  const hasLeft = ended.left !== undefined
  if (attempt.error !== undefined)
    return {
      outcome: hasLeft && attempt.error === errorTypeOf(ended) ? 'abandoned' : 'failed',
      error_type: attempt.error,
    }
  if (record.error === undefined && !hasLeft) return SERVED
  if (!isServing(attempt, record)) return SERVED
  return { outcome: hasLeft ? 'abandoned' : 'broken', error_type: errorTypeOf(ended) }
}

const SERVED = { outcome: 'served', error_type: '' }
