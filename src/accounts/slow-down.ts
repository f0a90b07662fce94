/** Slows down guessing: an address that keeps sending bad tokens waits longer for each response. */
import { type Clock, pause } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'

/** A wrong key in a new client is often tried a few times; these attempts are not delayed. */
export const FREE_FAILURES = 10
const FIRST_DELAY_MILLISECONDS = 250
const LONGEST_DELAY_MILLISECONDS = 2_000
/** After this time without a failure an address is reset. */
export const FORGIVE_MILLISECONDS = 60_000
/** Each delayed response holds a connection open: a flood must not accumulate them. */
export const MAX_WAITING_AN_ADDRESS = 10
export const MAX_WAITING = 1_000
/** About 1 MB; the address without failures for the longest time is evicted first. */
export const MAX_ADDRESSES = 10_000

type Offender = { failures: number; last: number; waiting: number }

type SlowDown = {
  /**
   * Counts a failure of an address; undefined if the response may be sent at once, otherwise settles when it may be. Ends
   * early when `signal` is aborted. Throws rate_limit_exceeded when too many responses are already delayed.
   */
  failed(address: string, signal: AbortSignal): Promise<void> | undefined
}

export function createSlowDown({ clock, log }: { clock: Clock; log: Log }): SlowDown {
  const records = new Map<string, Offender>()
  let waiting = 0

  function count(key: string): Offender {
    const now = clock.steady()
    const old = records.get(key)
    const record = old ?? { failures: 0, last: now, waiting: 0 }
    if (now - record.last >= FORGIVE_MILLISECONDS) record.failures = 0
    record.failures++
    record.last = now
    records.delete(key) // and back in as the newest
    records.set(key, record)
    const [oldest] = records.keys()
    if (oldest !== undefined && records.size > MAX_ADDRESSES) records.delete(oldest)
    return record
  }

  async function wait(record: Offender, ms: number, signal: AbortSignal): Promise<void> {
    record.waiting++
    waiting++
    try {
      await pause(clock, ms, signal)
    } catch {
      // The client left: nobody waits for the response.
    } finally {
      record.waiting--
      waiting--
    }
  }

  return {
    failed(address, signal) {
      const record = count(network(address))
      const over = record.failures - FREE_FAILURES
      if (over <= 0) return undefined
      if (over === 1) log.warn('responses to bad API keys are delayed', { address, failures: record.failures })
      if (record.waiting >= MAX_WAITING_AN_ADDRESS || waiting >= MAX_WAITING) {
        throw new GatewayError(
          'rate_limit_exceeded',
          'Too many requests with a bad API key; wait before the next one.',
          {
            retry_after: LONGEST_DELAY_MILLISECONDS / 1000,
          },
        )
      }
      const ms = Math.min(LONGEST_DELAY_MILLISECONDS, FIRST_DELAY_MILLISECONDS * 2 ** (over - 1))
      return wait(record, ms, signal)
    },
  }
}

/** What counts as one address: an IPv4 address, or an IPv6 /64, from which one subscriber may choose addresses freely. */
export function network(address: string): string {
  const [text = ''] = address.toLowerCase().split('%', 1) // without the zone of a link-local address
  if (!text.includes(':')) return text
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(text)?.[1] // IPv4 as a dual-stack socket shows it
  if (mapped) return mapped
  const [head = '', tail] = text.split('::', 2)
  const left = head === '' ? [] : head.split(':')
  const right = tail ? tail.split(':') : []
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  const groups = [...left, ...zeros, ...right].slice(0, 4)
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}
