/** The last gate, in durable mode: the call is in the store before its provider is called. */
import type { Clock } from '../kit/clock.ts'
import type { LedgerEntry } from '../store/ledger-entry.ts'
import type { Gate } from './admission.ts'
import type { CallRecord, Hold } from './call.ts'
import { openEntry } from './entries.ts'

type OpenCallGateParts = {
  isDurable(): boolean
  /** Durable when it resolves. */
  open(call: { entry_id: string; entry: LedgerEntry }): Promise<void>
  /** Of a call that is settled without an entry. */
  close(entry_id: string): void
  clock: Clock
}

export function createOpenCallGate({ isDurable, open, close, clock }: OpenCallGateParts): Gate {
  const holdOf = (record: CallRecord, entry_id: string): Hold => ({
    moveTo() {}, // what is held for the first model is recorded if this process ends
    settle() {
      if (!record.entries) close(entry_id) // the transaction that adds its entry closes it otherwise
    },
  })
  return {
    admit(request) {
      const { record } = request.call
      if (!record || !isDurable()) return undefined
      const entry = openEntry(record, { ...request, now_ms: record.admitted_ms ?? clock.now() })
      return open({ entry_id: entry.entry_id, entry }).then(() => holdOf(record, entry.entry_id))
    },
  }
}
