/** The last gate, in durable mode: the call is in the store before its provider is called. */
import type { Clock } from '../kit/clock.ts'
import type { OpenCall } from '../store/ledger/ledger-entry.ts'
import type { AdmissionRequest, CallRecord, Gate, Hold } from './call.ts'
import { openEntry } from './entries.ts'

type OpenCallGateParts = {
  isDurable(): boolean
  /** Durable when it resolves. */
  open(call: OpenCall): Promise<void>
  /** A call that is open costs more: durable when it resolves. */
  raise(call: OpenCall): Promise<void>
  /** Of a call that is settled without an entry. */
  close(entry_id: string): void
  clock: Clock
}

export function createOpenCallGate({ isDurable, open, raise, close, clock }: OpenCallGateParts): Gate {
  function callOf(record: CallRecord, request: AdmissionRequest): OpenCall {
    const entry = openEntry(record, request, record.admitted_ms ?? clock.now())
    return { entry_id: entry.entry_id, entry }
  }

  function holdOf(record: CallRecord, opened: OpenCall): Hold {
    let most = opened.entry.amount
    return {
      moveTo(request) {
        const call = callOf(record, request)
        const { amount } = call.entry
        // The first model may have charged as well: the dearer one counts. What has no known price is not the most.
        if (amount === null || most === null || amount <= most) return undefined
        most = amount
        return raise(call)
      },
      settle() {
        if (!record.entries) close(opened.entry_id) // the transaction that adds its entry closes it otherwise
      },
    }
  }

  async function opened(record: CallRecord, call: OpenCall): Promise<Hold> {
    await open(call)
    return holdOf(record, call)
  }

  return {
    name: 'open calls of the ledger',
    applies: isDurable,
    admit(request) {
      const { record } = request.call
      if (!record || request.is_unrecorded || !isDurable()) return undefined
      return opened(record, callOf(record, request))
    },
  }
}
