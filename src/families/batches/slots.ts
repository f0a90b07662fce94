/** Shares the calls that batches may make at a time among tokens, and among the batches of each. */

type Waiter = { token_id: string; batch_id: string; give(release: () => void): void }

export type Slots = {
  /** Waits for a slot; the result gives it back, once. Rejects when the signal is aborted. */
  take(whose: { token_id: string; batch_id: string }, signal: AbortSignal): Promise<() => void>
  /** How many are taken. */
  taken(): number
}

/** `most`: read at each use. */
export function createSlots({ most }: { most(): number }): Slots {
  const waiters: Waiter[] = []
  /** Slots by token and by batch. */
  const taken = new Map<string, number>()
  let total = 0

  const count = (id: string) => taken.get(id) ?? 0
  function change(ids: string[], by: number): void {
    for (const id of ids) {
      const left = count(id) + by
      if (left === 0) taken.delete(id)
      else taken.set(id, left)
    }
    total += by
  }

  /** The token with the fewest slots, then the batch with the fewest, then the one that has waited longest. */
  function next(): Waiter | undefined {
    let best: Waiter | undefined
    for (const waiter of waiters) {
      const byToken = best ? count(waiter.token_id) - count(best.token_id) : -1
      if (!best || byToken < 0 || (byToken === 0 && count(waiter.batch_id) < count(best.batch_id))) best = waiter
    }
    return best
  }

  function serve(): void {
    while (total < Math.max(1, most())) {
      const waiter = next()
      if (!waiter) return
      waiters.splice(waiters.indexOf(waiter), 1)
      const ids = [waiter.token_id, waiter.batch_id]
      change(ids, 1)
      let isGiven = true
      waiter.give(() => {
        if (!isGiven) return
        isGiven = false
        change(ids, -1)
        serve()
      })
    }
  }

  return {
    take({ token_id, batch_id }, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<() => void>()
      const stop = () => {
        const at = waiters.indexOf(waiter)
        if (at === -1) return
        waiters.splice(at, 1)
        reject(signal.reason)
      }
      const waiter: Waiter = {
        token_id,
        batch_id,
        give(release) {
          signal.removeEventListener('abort', stop)
          resolve(release)
        },
      }
      if (signal.aborted) reject(signal.reason)
      else {
        signal.addEventListener('abort', stop, { once: true })
        waiters.push(waiter)
        serve()
      }
      return promise
    },
    taken: () => total,
  }
}
