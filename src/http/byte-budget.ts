/** Bounds the memory that open requests hold: bodies that arrive or wait for a provider, and answers not yet read. */
import { defaultBytesInFlight } from '../config/config.ts'
import { GatewayError } from '../spec/error.ts'

type ByteLimits = {
  /** Undefined: a part of the memory of this machine or container. */
  max_bytes_in_flight: number | undefined
  /** Undefined: half of that. */
  max_token_bytes_in_flight: number | undefined
}

export type ByteBudget = {
  /**
   * Counts a body that is about to be read. Throws server_is_overloaded, or rate_limit_exceeded where only this token is
   * over its limit. A body alone, of a token or in all, is never refused, since waiting would not help it.
   */
  take(token_id: string, bytes: number): void
  /** Counts what is in memory already, such as an answer. It is not refused, but leaves less for the next bodies. */
  add(token_id: string, bytes: number): void
  release(token_id: string, bytes: number): void
  /** What is counted now. */
  held(): number
}

const RETRY_SECONDS = 1

export function createByteBudget(limits: ByteLimits): ByteBudget {
  const of_token = new Map<string, number>()
  let total = 0
  let derived: number | undefined

  const most = (): number => {
    derived ??= defaultBytesInFlight()
    return limits.max_bytes_in_flight ?? derived
  }

  function add(token_id: string, bytes: number): void {
    total += bytes
    of_token.set(token_id, (of_token.get(token_id) ?? 0) + bytes)
  }

  return {
    take(token_id, bytes) {
      const limit = most()
      if (total > 0 && total + bytes > limit) {
        throw new GatewayError(
          'server_is_overloaded',
          `Open requests hold ${total} bytes, and this body would exceed the limit of ${limit}; try again.`,
          { retry_after: RETRY_SECONDS },
        )
      }
      const own = of_token.get(token_id) ?? 0
      const own_limit = limits.max_token_bytes_in_flight ?? limit / 2
      if (own > 0 && own + bytes > own_limit) {
        throw new GatewayError(
          'rate_limit_exceeded',
          `The open requests of this token hold ${own} bytes, and this body would exceed its limit of ` +
            `${own_limit}; wait until one of them has ended.`,
          { retry_after: RETRY_SECONDS },
        )
      }
      add(token_id, bytes)
    },
    add,
    release(token_id, bytes) {
      total -= bytes
      const left = (of_token.get(token_id) ?? 0) - bytes
      if (left > 0) of_token.set(token_id, left)
      else of_token.delete(token_id)
    },
    held: () => total,
  }
}
