/** Writes of one process of which some run alone: for databases that run the writes of a process side by side. */

type Run<Transaction> = <T>(work: (write: Transaction) => Promise<T>) => Promise<T>

type ExclusiveWrites<Transaction> = {
  /** Runs together with others. */
  write: Run<Transaction>
  /** Runs after all writes that were called before it, and before all that are called after it. */
  writeAlone: Run<Transaction>
}

export function createExclusiveWrites<Transaction>(run: Run<Transaction>): ExclusiveWrites<Transaction> {
  /** What was called since the last exclusive write, and has not ended. */
  const pending = new Set<Promise<unknown>>()
  /** The last exclusive write, until it has ended; never rejects. */
  let alone: Promise<unknown> | undefined

  function track(call: Promise<unknown>): void {
    pending.add(call)
    const end = () => void pending.delete(call)
    call.then(end, end)
  }

  return {
    write(work) {
      const call = alone ? alone.then(() => run(work)) : run(work)
      track(call)
      return call
    },
    writeAlone(work) {
      const call = Promise.allSettled([alone, ...pending]).then(() => run(work))
      const ended = call.then(
        () => undefined,
        () => undefined,
      )
      alone = ended
      void ended.then(() => {
        if (alone === ended) alone = undefined
      })
      return call
    },
  }
}
