/** The rate limit of administrators: a token bucket for each, apart from the limits of API tokens. */
import type { Clock } from '../../kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'

const MINUTE_MILLISECONDS = 60_000
/** More administrators than this at a time: the one that was idle for the longest is forgotten. */
const MAX_ACTORS = 10_000

type PaceParts = { requests_per_minute(): number; clock: Clock }

/** Counts a request of an administrator. Throws rate_limit_exceeded. A tenth of a minute's requests may come at once. */
export function createPace({ requests_per_minute, clock }: PaceParts): (actor: string) => void {
  /** Until when the requests of each are accounted for, by the steady clock. */
  const busy = new Map<string, number>()

  return (actor) => {
    const now = clock.steady()
    const interval = MINUTE_MILLISECONDS / requests_per_minute()
    const burst = Math.max(MINUTE_MILLISECONDS / 10, interval)
    const until = Math.max(now, busy.get(actor) ?? 0) + interval
    // Half an interval of tolerance, since times are fractions.
    if (until - now > burst + interval / 2) {
      throw new GatewayError('rate_limit_exceeded', 'This administrator sends too many requests; wait.', {
        retry_after: (until - now - burst) / 1000,
      })
    }
    busy.delete(actor) // and back in as the newest
    busy.set(actor, until)
    const [oldest] = busy.keys()
    if (oldest !== undefined && busy.size > MAX_ACTORS) busy.delete(oldest)
  }
}
