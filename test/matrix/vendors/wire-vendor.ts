/** A vendor of the matrix: it reads its own wire, thinks, and says it in its own shapes. */
import { type Answer, startVendor, stream, type Vendor, type VendorRequest, whole } from '../../kit/vendor.ts'
import { type ReceivedRequest, respond, type ScriptedResponse } from '../model-script.ts'

type Body = Record<string, unknown>

/** What makes one vendor unlike the others. */
export type Wire = {
  /** Reads a request. A string is why this vendor refuses it. */
  decode(body: Body, path: string): ReceivedRequest | string
  isStreamed(body: Body, path: string): boolean
  whole(scripted: ScriptedResponse, model: string, requestBody: unknown): unknown
  /** The events of a stream: objects are sent as `data:`, strings as they are. */
  events(scripted: ScriptedResponse, model: string, requestBody: unknown): (object | string)[]
  /** Whether a stream ends with `data: [DONE]`. */
  isDone: boolean
  failure(status: number, message: string): unknown
  /** The event that a vendor sends when it fails in mid-stream. */
  failed(): object | string
  model(body: Body, path: string): string
  models: unknown
  /** A vendor that counts tokens: the paths that do, and the answer. */
  counts?: { matches(path: string): boolean; answer: unknown }
}

export type WireVendor = Vendor & {
  /** Lets a stream break that waits to: it does so only after the client has heard something. */
  breakStream(): void
}

/** What it thinks, and in pieces of how many bytes it says it; default: a packet an event. */
export type ModelScript = { respond(received: ReceivedRequest): ScriptedResponse; chunkBytes?(): number }

/** Starts it on a free port of loopback. */
export function startWireVendor(wire: Wire, script: ModelScript = { respond }): WireVendor {
  const vendor = startVendor()
  let breaking = Promise.withResolvers<void>()
  vendor.otherwise((socket) => {
    breaking = Promise.withResolvers<void>()
    return answerTo({ wire, script, broken: breaking.promise }, socket.request)(socket)
  })
  return { ...vendor, breakStream: () => breaking.resolve() }
}

type Parts = { wire: Wire; script: ModelScript; broken: Promise<void> }

function answerTo({ wire, script, broken }: Parts, request: VendorRequest): Answer {
  const path = new URL(request.path, 'http://vendor.test').pathname
  if (request.method === 'GET') return whole(wire.models)
  const body = request.json()
  if (wire.counts?.matches(path)) return whole(wire.counts.answer)
  const received = wire.decode(body, path)
  if (typeof received === 'string') return whole(wire.failure(400, received), { status: 400 })
  const scripted = script.respond(received)
  const { status, cut_after, hang_after, error_after } = scripted.faults
  if (status !== undefined) return whole(wire.failure(status, `refused with ${status}, as asked`), { status })
  const model = wire.model(body, path)
  if (!wire.isStreamed(body, path)) return whole(wire.whole(scripted, model, body))
  const events = wire.events(scripted, model, body)
  if (error_after !== undefined) {
    return stream([...events.slice(0, error_after), broken, wire.failed()], { done: false })
  }
  if (cut_after !== undefined) {
    return stream([...events.slice(0, cut_after), broken, ...events.slice(cut_after)], { cutAfter: cut_after })
  }
  const chunkBytes = script.chunkBytes?.()
  return stream(events, {
    done: wire.isDone,
    ...(hang_after === undefined ? {} : { hangAfter: hang_after }),
    ...(chunkBytes === undefined ? {} : { chunkBytes }),
  })
}

export const sse = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/** The first member of something that a strict vendor does not know. */
export const unknownFieldIn = (value: object, known: readonly string[]): string | undefined =>
  Object.keys(value).find((name) => !known.includes(name))
