/** A vendor of videos that keeps count of what it accepted, and answers the first order that it accepts by a fault. */
import { type Answer, startVendor, type Wire, whole } from './vendor.ts'

export type OrderFault = {
  /** Played in place of the answer to the first order that was accepted, one a request for it. */
  answers: Answer[]
  /** Whether the vendor accepts the order before it plays them. Default true. */
  isAccepted?: false
}

export type OrderVendor = {
  url: string
  /** The keys of the orders that it accepted, and would charge for. */
  accepted: string[]
  /** The keys of all orders that reached it. */
  received: string[]
  /** Resolves when an answer is played that does not come by itself; then anew for the next one. */
  silent(): Promise<void>
  /** Ends that answer. */
  release(): void
  stop(): Promise<void>
}

/** Answers nothing until `release`, then as `then` does. */
export type Hold = (then: Answer) => Answer

export function startOrderVendor(options: {
  /** Whether two orders with the same key are one. */
  keys: boolean
  fault(hold: Hold): OrderFault
}): OrderVendor {
  const vendor = startVendor()
  const accepted: string[] = []
  const received: string[] = []
  let waiting = Promise.withResolvers<void>()
  let released = Promise.withResolvers<void>()
  const hold: Hold = (then) => async (wire) => {
    waiting.resolve()
    await Promise.race([released.promise, wire.gone])
    await then(wire)
  }
  const { answers, isAccepted = true } = options.fault(hold)
  const left = [...answers]
  const shown = (id: string) => ({ id, object: 'video', model: 'film', status: 'completed', progress: 100 })

  function order(wire: Wire): Answer {
    const key = wire.request.headers['idempotency-key'] ?? ''
    received.push(key)
    const known = options.keys ? accepted.indexOf(key) : -1
    const next = left.shift()
    if (known === -1 && (next === undefined || isAccepted)) accepted.push(key)
    if (next) return next
    return whole(shown(`video_${known === -1 ? accepted.length - 1 : known}`))
  }

  vendor.otherwise((wire) => {
    if (wire.request.method === 'POST') return order(wire)(wire)
    return whole(shown(wire.request.path.split('/').at(-1) ?? ''))(wire)
  })
  return {
    url: vendor.url,
    accepted,
    received,
    async silent() {
      await waiting.promise
      waiting = Promise.withResolvers()
    },
    release() {
      released.resolve()
      released = Promise.withResolvers()
    },
    stop: vendor.stop,
  }
}
