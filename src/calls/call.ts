/** A call and what is known about it, without HTTP types. */
import type { Abortable } from '../kit/abortable.ts'
import type { TraceContext } from '../kit/trace-context.ts'
import type { CatalogueModel, Chosen } from '../models/catalogue.ts'
import type { BatchExchange } from '../protocols/shared/batch-exchange.ts'
import type { Capture } from '../protocols/shared/capture.ts'
import type { Target } from '../providers/provider.ts'
import type { CallFamily } from '../spec/endpoint-family.ts'
import type { ErrorCode } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { Estimate, Units } from '../spec/usage.ts'
import type { TaskBudget } from '../store/ledger/budget-store.ts'
import type { LedgerEntry } from '../store/ledger/ledger-entry.ts'
import type { CallGuards } from './guards/call-guards.ts'
import type { GuardResult } from './guards/guard.ts'
import type { GuardPlan } from './guards/guards.ts'
import type { LimitPlan } from './limits/plans.ts'
import type { LimitReport } from './limits/status.ts'
import type { Attempt, ServingAttempt } from './routing/attempt.ts'
import type { Decision } from './routing/explain.ts'
import type { OnlyTarget } from './routing/open-attempt.ts'
import type { ProviderPreferences } from './routing/preferences.ts'

/** One call of one caller: from an HTTP request, a background worker or a test. */
export type Call = {
  /** Correlates log lines, upstream requests and responses. */
  readonly request_id: string
  readonly caller: Caller
  /** Whom the caller acts for, as it names them; undefined: nobody is named. */
  end_user?: string
  /** What the caller says it belongs to: a conversation, a run of an agent. For the request log. */
  session?: string
  /** The metadata of its body. For the request log. */
  metadata?: Readonly<Record<string, unknown>>
  /** The task that it has created. */
  task_id?: string
  /** Aborted, with the reason, when the client has left or the gateway stops. */
  readonly signal: AbortSignal
  /** The same, for who needs no signal as such. Absent: `signal` itself. */
  readonly ending?: Abortable
  /** By the steady clock. */
  readonly arrived: number
  /**
   * Whether it is not the one call of a request: a background response, one of several prompts, an embedding for the
   * semantic cache.
   */
  readonly is_detached?: true
  /** The trace that it belongs to; absent: none is recorded. */
  trace?: TraceContext | undefined
  /** What is to be noted of it; absent: nothing. */
  capture?: Capture | undefined
  readonly is_explained?: boolean
  /** How it is made: set by `Pipeline.authorize`, before the request is decoded. */
  plan?: Plan | undefined
  /** What the caller asks of its routing and of the response cache; absent: nothing. */
  options?: CallOptions
  /** Set where it is a line of a batch that a vendor executes: nothing is sent. */
  readonly exchange?: BatchExchange | undefined
  /** What checks its contents; absent: nothing does. Set when it is prepared. */
  guards?: CallGuards
  /** Where its rate limits stand; set when it is admitted or refused. */
  limits?: LimitReport
  /** What is known about it; set by the pipeline. */
  record?: CallRecord
  /** What is to be done when it has ended, besides what is done for all calls; see `whenEnded`. */
  atEnd?: ((record: CallRecord) => void)[]
}

/** Does the work once, when the call was refused or settled. */
export function whenEnded(call: Call, work: (record: CallRecord) => void): void {
  call.atEnd ??= []
  call.atEnd.push(work)
}

/** What a caller may do with a model, and how: the same for all its calls until something changes that it was made of. */
export type Plan = Chosen & {
  /** The model as the client named it; undefined: it named none. */
  readonly name: string | undefined
  readonly family: CallFamily
  /** The gates that may hold or refuse its calls, in order: only those for which something is configured. */
  readonly gates: readonly Gate[]
  /** What checks the contents of its calls; undefined: nothing does. */
  readonly guards: GuardPlan | undefined
  /** Whether other models may serve a call that this one cannot serve. */
  readonly has_fallbacks: boolean
  /** Whether a target takes only some requests. */
  readonly has_conditions: boolean
  /** Whether the provider of a target has rate limits of its own. */
  readonly has_limited_targets: boolean
  /** Whether one attempt at the one target of the model is all that a call may do, unless it asks for more. */
  readonly is_plain: boolean
  /** Of each response. */
  readonly headers: Readonly<Record<string, string>>
  /** Where it is plain: its target, as the router knows it; set by the first call. */
  only?: OnlyTarget | undefined
  /** The rate limits of its calls; set by the first one. */
  limits?: LimitPlan
}

/** `on`: cache the response in any case. `off`: neither read nor write the cache. `refresh`: replace what is cached. */
export type CacheDirective = 'on' | 'off' | 'refresh'

/** What a caller asks of the routing of one call, and of the response cache. */
export type CallOptions = {
  /** From the arrival of the call to its first byte; the deadline of the model may be shorter. */
  timeout_ms?: number
  /** One upstream call: no other key, target or model after it. */
  no_fallback?: true
  /** For the conditions of targets, and for the access log. */
  tags?: readonly string[]
  /** Absent: by the settings of the model. */
  cache?: CacheDirective
  /** Other models that may serve the call, in order, instead of the fallbacks of its model. The caller may use each. */
  models?: readonly string[]
  provider?: ProviderPreferences
}

/** Counts the usage of one call. */
export type Meter<Usage> = {
  /** The usage as the client sees it; estimated where the provider reported none. A promise only where it has to be. */
  usage(): Usage | Promise<Usage>
  units(usage: Usage): Units
  /**
   * Whether `usage` covers what the provider may charge: it has reported its counts, or delivered a part of its response.
   * Absent: it always does.
   */
  hasCounted?(): boolean
  /** Whether the client has got a part that `usage` does not count where the provider has not, such as an image. Absent: no. */
  hasDelivered?(): boolean
}

/** A call that asks to be admitted. */
export type AdmissionRequest = {
  call: Call
  family: CallFamily
  /** The model that serves it. */
  model: CatalogueModel
  estimate: Estimate
  /** It becomes no entry of the ledger: the submission of a task, which is recorded itself. */
  is_unrecorded?: true
}

export type Gate = {
  readonly name: string
  /** Whether calls of this caller at this model may be held or refused, as things are configured. Absent: they may. */
  applies?(caller: Caller, model: Pick<CatalogueModel, 'id'>): boolean
  /** Throws GatewayError, or rejects with it, where the call may not run. A promise only where it has to wait. */
  admit(request: AdmissionRequest): Hold | undefined | Promise<Hold | undefined>
  /** Whether a provider has limits of its own. Absent: none has. */
  limitsProvider?(provider_id: string): boolean
  /** Whether an attempt at this provider may be made now. A promise only where it has to wait. Absent: yes. */
  mayAttempt?(provider_id: string, estimate: Estimate): boolean | Promise<boolean>
  /** The limit that keeps an attempt from this provider now, for an operator. Absent: none. */
  limitOfAttempt?(provider_id: string, estimate: Estimate): string | undefined
  /**
   * Holds what an attempt at this provider can use. Throws GatewayError where it may not be made. A promise only where it
   * has to wait. Absent: nothing.
   */
  admitAttempt?(provider_id: string, estimate: Estimate): Hold | undefined | Promise<Hold | undefined>
}

export type Hold = {
  /** Another model takes over the call. Throws GatewayError where it may not, and then holds what it held. */
  moveTo(request: AdmissionRequest): void | Promise<void>
  /**
   * Called exactly once, when the call is settled: releases the hold, and counts what was used instead. `charged`:
   * nano-units that the ledger appends for it.
   */
  settle(used: Units, charged: number): void
  /** What a task that the call has created is to hold in the store instead; `moved` once that is stored. */
  forTask?(): TaskBudget
  moved?(): void
  /** Called instead where another gate refuses the call: as if it had never been. Absent: `settle`, with nothing used. */
  cancel?(): void
}

/** An attempt that its provider may have charged although it did not serve the call. */
export type DoubtfulAttempt = {
  /** Undefined: not known. */
  readonly target: Target | undefined
  readonly model: CatalogueModel
  /** The most that it can have used; undefined: not known. */
  readonly most: Units | undefined
  /** Of a try that another one has beaten: counts what it had received. */
  readonly lost_hedge?: Meter<unknown>
}

/** What is known about a call so far. The pipeline writes it; subscribers read it. */
export type CallRecord = {
  readonly call: Call
  readonly family: CallFamily
  /** The public id of the model that serves it; set once it is resolved. */
  model?: string
  /** When it arrived, in unix seconds: the prices of this time count. */
  readonly at: number
  /** When budgets admitted it, in unix milliseconds: what it is charged counts towards the windows of this time. */
  admitted_ms?: number
  /** The id that was requested, where a fallback serves the call. */
  requested?: string
  /** The target of the last attempt. */
  target?: Target
  /** Its upstream calls, in order; the last one serves it unless that failed. */
  readonly attempts: Attempt[]
  /** How each model of the call was routed; only where the client gets it. */
  decisions?: (Decision & { model: string })[]
  is_stream: boolean
  /** From when it is sent until it is settled. A call that was refused before, or is never sent, is not open. */
  is_open?: boolean
  /** Set where the cache is on for the call. `bypass`: the call was neither looked up nor cached. */
  cache?: 'hit' | 'miss' | 'bypass'
  /** The age of the response, where it came from the cache. */
  cache_age_seconds?: number
  /** The target that the cached response came from. */
  cache_target?: string
  /** How similar the request is that the response was given to; absent for an equal one. */
  cache_similarity?: number
  /** What limits and budgets hold for it, from its admission until it is settled. */
  holds?: Hold[] | undefined
  /** Whether limits or a budget have refused it, or make it wait: nothing was sent, and no usage is recorded. */
  is_refused?: boolean
  /** What it uses as far as it was known before it was sent. */
  estimate?: Estimate
  /** What its guards have decided. Absent: it has none. */
  guards?: GuardResult[]
  /** How long it waited for a rate limit. */
  queued_ms?: number
  /** Set when the call is settled. */
  units?: Units
  /** Attempts that did not serve it, and that their providers may have charged. Absent: there are none. */
  doubts?: DoubtfulAttempt[]
  /** The id of its entry in the ledger, once it has one. */
  entry_id?: string
  /** What is recorded of it, its own entry first. Set when the call is settled. */
  entries?: readonly LedgerEntry[]
  error: ErrorCode | undefined
  upstream_status?: number | undefined
  /** Tells the router that the response of the serving attempt has ended: with an error where it broke. */
  serving?: ServingAttempt | undefined
}

/** Executes an attempt in the trace of its call. */
export type TraceAttempt = <Answer>(call: Call, attempt: Attempt, execute: () => Promise<Answer>) => Promise<Answer>

/** Every method is optional: a subscriber implements what it needs. */
export type CallSubscriber = Partial<CallEvents>

export type CallEvents = {
  started(record: CallRecord): void
  attemptStarted(record: CallRecord, attempt: Attempt): void
  attemptFailed(record: CallRecord, attempt: Attempt, error: unknown): void
  /** The first part of a streamed response is sent to the client. */
  firstByte(record: CallRecord): void
  /** Exactly once for each call that was refused or sent, after its usage was given to the ledger. */
  finished(record: CallRecord): void
}
