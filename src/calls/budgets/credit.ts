/** Credit: an entry of the ledger that a token or a project may use up in its budget without a window. */
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { AuditDraft, AuditOrigin } from '../../spec/audit.ts'
import { MAX_AMOUNT, toNano } from '../../spec/price.ts'
import { type LedgerEntry, NO_CALL } from '../../store/ledger/ledger-entry.ts'

const MAX_NOTE_CHARACTERS = 200

/** A token, with its project, or a project. */
type CreditOwner = { token_id?: string | undefined; project_id?: string | null | undefined }

type CreditOrder = {
  owner: CreditOwner
  /** In units of the currency of the ledger; negative: credit is taken back. */
  amount: number
  note: string | undefined
  at_ms: number
  origin: AuditOrigin
}

export const isCredit = (amount: number): boolean =>
  Number.isFinite(amount) && Math.abs(amount) <= MAX_AMOUNT && toNano(amount) !== 0

/** The entry, and the row of the audit log that is written with it. */
export function creditOf({ owner, amount, note, at_ms, origin }: CreditOrder): {
  entry: LedgerEntry
  audit: AuditDraft
} {
  const { token_id, project_id = null } = owner
  const entry_id = `credit_${randomAlphanumerics(24)}`
  return {
    entry: {
      ...NO_CALL,
      entry_id,
      kind: 'credit',
      at_ms,
      call_id: (note ?? '').slice(0, MAX_NOTE_CHARACTERS),
      token_id: token_id ?? '',
      project_id: token_id === undefined ? project_id : null,
      amount: -toNano(amount),
      cost: 0,
    },
    audit: {
      ...origin,
      at_ms,
      action: 'budget.credit',
      object_type: token_id === undefined ? 'project' : 'token',
      object_id: token_id ?? project_id ?? '',
      project_id,
      after: { entry_id, amount, note: note ?? null },
    },
  }
}
