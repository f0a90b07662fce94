/** Equal requests at the same time: the first one calls the provider, the others wait for its answer. */
import type { Clock } from '../../kit/clock.ts'

/** `failed`: without an answer that others may have. `left`: its client did not wait for the answer. */
type Ending<Answer> = { answer: Answer } | 'failed' | 'left'

/** The one call of equal requests. */
export type Flight<Answer> = {
  /** Only the first call has an effect. */
  end(ending: Ending<Answer>): void
}

/** `deadline`: by the steady clock. */
type Waiting = { key: string; signal: AbortSignal; deadline: number }

/** A request that has waited this long calls the provider itself: the client of the first one may read slowly. */
const WAIT_MILLISECONDS = 60_000

export function createFlights<Answer>({ clock }: { clock: Clock }) {
  const open = new Map<string, Promise<Ending<Answer>>>()
  return {
    /** The flight of this key; undefined: another one is open. */
    begin(key: string): Flight<Answer> | undefined {
      if (open.has(key)) return undefined
      const { promise, resolve } = Promise.withResolvers<Ending<Answer>>()
      open.set(key, promise)
      return {
        end(ending) {
          if (open.get(key) === promise) open.delete(key)
          resolve(ending)
        },
      }
    },
    /** How the open flight of this key ends; undefined: none is open. Rejects with the reason of the signal. */
    join({ key, signal, deadline }: Waiting): Promise<Ending<Answer>> | undefined {
      const flight = open.get(key)
      if (!flight) return undefined
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const left = Math.max(0, deadline - clock.steady())
        const cancel = clock.after(Math.min(WAIT_MILLISECONDS, left), () => finish('failed'))
        const leave = () => {
          cancel()
          reject(signal.reason)
        }
        function finish(ending: Ending<Answer>): void {
          cancel()
          signal.removeEventListener('abort', leave)
          resolve(ending)
        }
        signal.addEventListener('abort', leave, { once: true })
        void flight.then(finish)
      })
    },
  }
}
