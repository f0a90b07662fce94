/** Shares the slots of a process fairly among owners, and among the jobs of each. */

/** Ids, from the owner down: the fewest slots of the first id count first, then those of the next one. */
type Waiter = { ids: readonly string[]; give(release: () => void): void }

export type FairSlots = {
  /** Waits for a slot; the result gives it back, and is called once. Rejects when the signal is aborted. */
  take(ids: readonly string[], signal: AbortSignal): Promise<() => void>
  /** How many are taken. */
  taken(): number
}

/** `most`: read at each use. */
export function createFairSlots(most: () => number): FairSlots {
  /** A few, in order. A `Set` would keep those that have passed through it (`linked-set.ts`). */
  const waiters: Waiter[] = []
  /** Slots by id. */
  const taken = new Map<string, number>()
  let total = 0

  const count = (id: string) => taken.get(id) ?? 0

  function change(ids: readonly string[], by: number): void {
    total += by
    for (const id of ids) {
      taken.set(id, count(id) + by)
      if (count(id) === 0) taken.delete(id)
    }
  }

  function hasFewer({ ids }: Waiter, other: Waiter): boolean {
    for (const [at, id] of ids.entries()) {
      const more = count(id) - count(other.ids[at] ?? '')
      if (more !== 0) return more < 0
    }
    return false
  }

  function serve(): void {
    while (waiters.length > 0 && total < Math.max(1, most())) {
      const next = waiters.reduce((found, waiter) => (hasFewer(waiter, found) ? waiter : found))
      waiters.splice(waiters.indexOf(next), 1)
      const { ids } = next
      change(ids, 1)
      next.give(() => {
        change(ids, -1)
        serve()
      })
    }
  }

  return {
    async take(ids, signal) {
      signal.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<() => void>()
      const waiter = { ids, give: resolve }
      const stop = () => {
        const at = waiters.indexOf(waiter)
        if (at === -1) return
        waiters.splice(at, 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', stop, { once: true })
      waiters.push(waiter)
      serve()
      return promise.finally(() => signal.removeEventListener('abort', stop))
    },
    taken: () => total,
  }
}
