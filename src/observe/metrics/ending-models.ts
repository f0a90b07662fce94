/** Models that end soon, or have ended, and who still uses them. */
import type { Model } from '../../spec/model.ts'
import type { LedgerStore } from '../../store/ledger/ledger-store.ts'

/** `at`: unix seconds. `users`: the busiest first. */
type EndingModel = {
  model: string
  event: 'deprecated' | 'retired'
  at: number
  users: { token_id: string; project_id?: string; requests: number }[]
}

type EndingParts = { usage: LedgerStore['usage']; now: number; days: number }

const DAY = 86_400
/** How far back a call counts as use. */
const USED_DAYS = 7
const MOST_USERS = 20

/** Those that are deprecated or retired within `days`, or were within the last ones, and were called in the last 7 days. */
export async function endingModels(
  models: readonly Model[],
  { usage, now, days }: EndingParts,
): Promise<EndingModel[]> {
  const ending = models.flatMap(({ id, deprecated_at, retired_at }) =>
    [
      { model: id, event: 'deprecated' as const, at: deprecated_at },
      { model: id, event: 'retired' as const, at: retired_at },
    ].flatMap(({ at, ...one }) => (at !== undefined && Math.abs(at - now) <= days * DAY ? [{ ...one, at }] : [])),
  )
  if (ending.length === 0) return []
  const { rows } = await usage({ by: ['model', 'token', 'project'], from: now - USED_DAYS * DAY, to: now })
  return ending
    .map((one) => ({
      ...one,
      users: rows
        .filter(({ model, requests }) => model === one.model && requests > 0)
        .sort((a, b) => b.requests - a.requests)
        .slice(0, MOST_USERS)
        .map(({ token_id = '', project_id, requests }) => ({ token_id, ...(project_id && { project_id }), requests })),
    }))
    .filter(({ users }) => users.length > 0)
}
