/** What each token was used for within seven days, for the list of tokens: one request for all of them. */
import { useApi } from '../../api/hooks.ts'

export type RecentUse = { requests: number; amount: number }

const DAY = 86_400
const DAYS = 7
const NONE: RecentUse = { requests: 0, amount: 0 }

/** Undefined until it is known, and where there are too many tokens for one answer. */
export function useRecentUse(): (token_id: string) => RecentUse | undefined {
  const today = Math.floor(Date.now() / 1000 / DAY) * DAY
  const usage = useApi('GET /admin/v1/usage', { query: { by: 'token', from: String(today - (DAYS - 1) * DAY) } })
  const known = new Map(usage.data?.data.map((row) => [row.token_id, row]))
  return (token_id) => (usage.data ? (known.get(token_id) ?? NONE) : undefined)
}
