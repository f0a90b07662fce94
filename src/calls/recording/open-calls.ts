/** Durable mode: a call is in the store before its provider is called, so that a crash cannot lose it. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { OpenCall } from '../../store/ledger/ledger-entry.ts'
import type { LedgerStore } from '../../store/ledger/ledger-store.ts'

type OpenCallsParts = {
  store: Pick<LedgerStore, 'open' | 'raise' | 'renew' | 'interruptLapsed'>
  /** That of its leases of budgets too: these last until its open calls are recorded. */
  process_id: string
  /** Of calls that may be open in the store, although that failed. */
  close(entry_id: string): void
  /** That of the store, which all processes share. */
  clock: Clock
  log: Log
}

/** A process that has not renewed its lease for so long has ended. */
const LEASE_MILLISECONDS = 60_000
const RENEW_MILLISECONDS = 10_000

export function createOpenCalls({ store, process_id, close, clock, log }: OpenCallsParts) {
  let waiting: { call: OpenCall; done(): void; failed(cause: unknown): void }[] = []
  let committing: Promise<void> | undefined
  let hasOpened = false
  let isStopped = true
  let cancel = () => {}
  let sweeping: Promise<void> | undefined

  const lease = () => ({ process: process_id, until_ms: clock.now() + LEASE_MILLISECONDS })

  /** Calls that arrive during a commit share the next one. */
  async function commit(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      try {
        await store.open(
          batch.map(({ call }) => call),
          lease(),
        )
        for (const { done } of batch) done()
      } catch (cause) {
        for (const { call, failed } of batch) {
          close(call.entry_id)
          failed(cause)
        }
      }
    }
    committing = undefined
  }

  async function sweep(): Promise<void> {
    try {
      if (hasOpened) await store.renew(lease())
      const count = await store.interruptLapsed(clock.now())
      if (count > 0) log.warn('calls of an ended process were recorded as interrupted', { calls: count })
    } catch (cause) {
      log.error('open calls could not be checked; will retry', {}, cause)
    }
  }

  function sweepLater(ms: number): void {
    if (isStopped) return
    cancel = clock.after(ms, () => {
      sweeping = sweep().then(() => {
        sweeping = undefined
        sweepLater(RENEW_MILLISECONDS)
      })
    })
  }

  return {
    /** Durable when it resolves. Rejects with `storage_unavailable`. */
    open(call: OpenCall): Promise<void> {
      hasOpened = true
      return new Promise((done, failed) => {
        waiting.push({ call, done, failed })
        committing ??= Promise.resolve().then(commit)
      })
    },
    /** Replaces what is recorded of an open call. Durable when it resolves. Rejects with `storage_unavailable`. */
    raise: store.raise,
    /** Records the open calls of ended processes, now and then. */
    start(): void {
      isStopped = false
      sweepLater(1_000)
    },
    async stop(): Promise<void> {
      isStopped = true
      cancel()
      await sweeping
      await committing
    },
  }
}
