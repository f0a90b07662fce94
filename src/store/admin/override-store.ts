/** Contract of operators' stored changes of routing at run time. */
import type { AuditDraft } from '../../spec/audit.ts'

/** What an override is for; `key`: one key of a provider, for all its models. */
type OverrideKind = 'model' | 'provider' | 'key' | 'target'

/**
 * `drained`: it gets no new calls; open calls end, and its tasks go on. `disabled`: as if it were not configured, so its
 * tasks wait too.
 */
export type OverrideState = 'drained' | 'disabled'

/** `name`: a model id, `provider`, `provider#key`, `provider/model` or `provider/model#key`. */
export type Override = {
  kind: OverrideKind
  name: string
  /** Null: as configured, like `state`. */
  weight: number | null
  state: OverrideState | null
  /** Who set it. */
  set_by: string
  /** Unix seconds. */
  set_at: number
}

export type OverrideChange = Partial<Pick<Override, 'weight' | 'state'>>

export type OverrideStates = { before: Override | undefined; after: Override | undefined }

export type OverrideGuard = {
  check?(before: Override | undefined): void
  audit?(states: OverrideStates): AuditDraft
}

export type OverrideStore = {
  list(): Promise<Override[]>
  /**
   * Changes the given fields in one step; with nothing left that is not as configured, the override is removed.
   * Returns what it was and what it is. `check` is given what it was, and no other change comes between; what it throws
   * stops the change. `audit`: the row that is appended with it.
   */
  set(
    of: Pick<Override, 'kind' | 'name'>,
    change: OverrideChange,
    by: Pick<Override, 'set_by' | 'set_at'>,
    with_it?: OverrideGuard,
  ): Promise<OverrideStates>
  /** A number that increases with every change, by any process. */
  revision(): Promise<number>
}
