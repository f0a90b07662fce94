/** Creates what admits and counts calls: rate limits, budgets, the ledger, and their alerts. */
import { join } from 'node:path'
import type { LimitsRouteParts } from '../accounts/routes/limits-route.ts'
import type { UsageRouteParts } from '../accounts/routes/usage-route.ts'
import { createBudgetGate } from '../calls/budget-gate.ts'
import type { BudgetAccount } from '../calls/budgets/budget-accounts.ts'
import { refusingEvent, thresholdEvent } from '../calls/budgets/budget-events.ts'
import { createFindOwner } from '../calls/budgets/budget-owners.ts'
import { budgetStates } from '../calls/budgets/budget-states.ts'
import { createBudgets } from '../calls/budgets/budgets.ts'
import type { Gate } from '../calls/call.ts'
import type { AskGuard } from '../calls/guards/guard.ts'
import { createGuards, type Guards } from '../calls/guards/guards.ts'
import { createRateLimiter } from '../calls/limits/rate-limits.ts'
import { createOpenCallGate } from '../calls/open-call-gate.ts'
import { createPlans, type Plans } from '../calls/plan.ts'
import { createJournal } from '../calls/recording/journal.ts'
import { createLedger } from '../calls/recording/ledger.ts'
import { createOpenCalls } from '../calls/recording/open-calls.ts'
import { createSpool } from '../calls/recording/spool.ts'
import type { RecordUsage } from '../calls/settle.ts'
import type { Config } from '../config/config.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import type { Log } from '../kit/log.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { type Alerts, createAlerts, type RaisedAlert } from '../observe/alerts/alerts.ts'
import { createGuardBlocks } from '../observe/alerts/guard-blocks.ts'
import type { Valkey } from '../store/engines/valkey.ts'
import type { Store } from '../store/store.ts'

type AccountingParts = {
  catalogue: Catalogue
  store: Pick<Store, 'budgets' | 'alerts' | 'alertHistory' | 'ledger' | 'rateLimits' | 'tokens' | 'projects'>
  /** Undefined: not configured. */
  valkey: Valkey | undefined
  /** Names this process where it holds something of what several share. */
  process_id: string
  config(): Config
  guardedFetch: GuardedFetch
  askGuard: AskGuard
  /** Called for every token that was used. */
  onUsed(token_id: string): void
  /** Told of each refusal by a limit or a budget. */
  onRefused?: ((scope: string, limit: string) => void) | undefined
  /** Told of each alert that is raised, and each time that it is. */
  onRaised(alert: RaisedAlert): void
  clock: Clock
  log: Log
}

type Accounting = {
  ledger: ReturnType<typeof createLedger>
  alerts: Alerts
  stages: { recordUsage: RecordUsage; isDurable(): boolean; gates: readonly Gate[]; guards: Guards; plans: Plans }
  /** Rate limits of providers. */
  attemptLimits: Gate
  /** What a token has used, and what is left of its limits. */
  reports: Pick<UsageRouteParts, 'ledger'> & LimitsRouteParts
  /** For metrics: how many calls wait for a limit, and how the budgets stand. */
  limits: { waiting(): number; budgets(): Iterable<BudgetAccount> }
  /** Deletes one batch of what the ledger no longer keeps; false: nothing is left. */
  pruneLedger(): Promise<boolean>
  reloaded(): void
  start(): void
  /** After the last call was settled. */
  close(options: { deadline_ms: number }): Promise<void>
}

export function createAccounting(parts: AccountingParts): Accounting {
  const {
    store,
    valkey,
    process_id,
    config,
    catalogue,
    guardedFetch,
    askGuard,
    onUsed,
    onRefused,
    onRaised,
    clock,
    log,
  } = parts
  const alerts = createAlerts({
    store: store.alerts,
    history: store.alertHistory,
    settings: () => config().alerts,
    guardedFetch,
    onRaised,
    clock,
    log,
  })
  const currency = () => config().ledger.currency
  const budgets = createBudgets({
    store: store.budgets,
    process_id,
    settings: config,
    revision: catalogue.revision,
    currency,
    findOwner: createFindOwner({ store, settings: config, clock }),
    alertsFor: (reached) => alerts.make(thresholdEvent(reached, currency())),
    onRefused,
    onRefusing(refused) {
      const event = refusingEvent(refused, { currency: currency(), now_ms: clock.now() })
      log.warn('a budget refuses calls', event.data)
      alerts.raise(event)
    },
    onThreshold(reached) {
      const event = thresholdEvent(reached, currency())
      log.warn('a budget has reached a threshold', event.data)
      alerts.note({ ...event, key: `${event.type} ${event.message}`, again_seconds: 86_400 })
    },
    clock,
    log,
  })
  // A reload changes it.
  const settings = { durable: config().ledger.durable }
  const isDurable = () => settings.durable
  const directory = join(config().data_dir, 'spool')
  const ledger = createLedger({
    store: store.ledger,
    journal: createJournal({ directory, now: clock.now, log }),
    spool: createSpool({
      directory,
      max_bytes: config().ledger.spool_megabytes * 1_000_000,
      now: clock.now,
      onUnreadable: (path, cause) => log.error('spooled ledger entries could not be read', { path }, cause),
    }),
    settings,
    process_id,
    onUsed,
    budgets,
    clock,
    log,
  })
  const { store: limit_store } = config().limits
  const inValkey = limit_store === 'valkey' ? valkey : undefined
  const shared = limit_store === 'memory' ? undefined : { store: store.rateLimits, process_id, valkey: inValkey }
  const rateLimiter = createRateLimiter({ config, shared, onRefused, clock, log })
  const openCalls = createOpenCalls({ store: store.ledger, process_id, close: ledger.closeCall, clock, log })
  let closing: Promise<void> | undefined
  const onBlocked = createGuardBlocks({ alerts, settings: () => config().alerts, clock })
  const guards = createGuards({ config, ask: askGuard, onBlocked })
  const gates = [
    rateLimiter,
    createBudgetGate({ budgets, config, revision: catalogue.revision, clock }),
    createOpenCallGate({ isDurable, open: openCalls.open, raise: openCalls.raise, close: ledger.closeCall, clock }), // the last one
  ]
  return {
    ledger,
    alerts,
    stages: {
      recordUsage: ledger.record,
      isDurable,
      gates,
      guards,
      plans: createPlans({ catalogue, gates, guards, clock }),
    },
    attemptLimits: rateLimiter,
    reports: {
      ledger: { usage: store.ledger.usage, currency },
      limits: {
        rateLimits: rateLimiter.statesOf,
        budgets: (caller) => budgetStates(caller, { store: store.budgets, settings: config, clock }),
        currency,
      },
    },
    limits: { waiting: () => rateLimiter.waiting, budgets: budgets.accounts },
    pruneLedger() {
      const { keep_minutes_days, keep_hours_days, keep_entries_days } = config().ledger
      const keep = { minutes_days: keep_minutes_days, hours_days: keep_hours_days, entries_days: keep_entries_days }
      return store.ledger.prune(keep, unixSeconds(clock))
    },
    reloaded() {
      settings.durable = config().ledger.durable
      guards.all() // compiled now, not by the first call
    },
    start() {
      guards.all()
      budgets.start()
      alerts.start()
      ledger.start()
      openCalls.start()
    },
    close({ deadline_ms }) {
      closing ??= close(deadline_ms)
      return closing
    },
  }

  async function close(deadline_ms: number): Promise<void> {
    await openCalls.stop()
    await ledger.close()
    await Promise.all([alerts.stop({ deadline_ms }), budgets.close(), rateLimiter.close()])
  }
}
