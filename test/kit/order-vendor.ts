/** A vendor of videos that records the orders it accepted, and responds to the first one with a fault. */
import { type Answer, startVendor, type Wire, whole } from './vendor.ts'

export type OrderFault = {
  /** Sent instead of the response to the first accepted order, one per request for it. */
  answers: Answer[]
  /** Whether the vendor accepts the order before it sends them. Default true. */
  isAccepted?: false
}

export type OrderVendor = {
  url: string
  /** The idempotency keys of the orders that it accepted and would charge for. */
  accepted: string[]
  /** The idempotency keys of all orders that reached it. */
  received: string[]
  /** Resolves when a response is held back; call it again for the next one. */
  untilHeld(): Promise<void>
  /** Sends that response. */
  release(): void
  stop(): Promise<void>
}

/** Holds the response `then` back until `release`. */
export type Hold = (then: Answer) => Answer

export function startOrderVendor(options: {
  /** Whether two orders with the same key are one. */
  keys: boolean
  fault(hold: Hold): OrderFault
}): OrderVendor {
  const vendor = startVendor()
  const accepted: string[] = []
  const received: string[] = []
  let held = Promise.withResolvers<void>()
  let released = Promise.withResolvers<void>()
  const hold: Hold = (then) => async (wire) => {
    held.resolve()
    await Promise.race([released.promise, wire.aborted])
    await then(wire)
  }
  const { answers, isAccepted = true } = options.fault(hold)
  const remaining = [...answers]
  const videoOf = (id: string) => ({ id, object: 'video', model: 'film', status: 'completed', progress: 100 })

  function order(wire: Wire): Answer {
    const key = wire.request.headers['idempotency-key'] ?? ''
    received.push(key)
    const known = options.keys ? accepted.indexOf(key) : -1
    const next = remaining.shift()
    if (known === -1 && (next === undefined || isAccepted)) accepted.push(key)
    if (next) return next
    return whole(videoOf(`video_${known === -1 ? accepted.length - 1 : known}`))
  }

  vendor.otherwise((wire) => {
    if (wire.request.method === 'POST') return order(wire)(wire)
    return whole(videoOf(wire.request.path.split('/').at(-1) ?? ''))(wire)
  })
  return {
    url: vendor.url,
    accepted,
    received,
    async untilHeld() {
      await held.promise
      held = Promise.withResolvers()
    },
    release() {
      released.resolve()
      released = Promise.withResolvers()
    },
    stop: vendor.stop,
  }
}
