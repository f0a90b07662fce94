/** A provider of the matrix: it decodes its protocol, runs the script, and encodes the response. */
import { type Answer, startVendor, stream, type Vendor, type VendorRequest, whole } from '../../kit/vendor.ts'
import { type ReceivedRequest, respond, type ScriptedResponse } from '../model-script.ts'

type Body = Record<string, unknown>

/** The differences between the providers. */
export type Wire = {
  /** Decodes a request. A string is the reason of a refusal. */
  decode(body: Body, path: string): ReceivedRequest | string
  isStreamed(body: Body, path: string): boolean
  whole(scripted: ScriptedResponse, model: string, requestBody: unknown): unknown
  /** The events of a stream: objects are sent as `data:`, strings unchanged. */
  events(scripted: ScriptedResponse, model: string, requestBody: unknown): (object | string)[]
  /** Whether a stream ends with `data: [DONE]`. */
  isDone: boolean
  failure(status: number, message: string): unknown
  /** The event of a failure during a stream. */
  failed(): object | string
  model(body: Body, path: string): string
  models: unknown
  /** For a provider that counts tokens: its paths and its response. */
  counts?: { matches(path: string): boolean; answer: unknown }
}

export type WireVendor = Vendor & {
  /** Lets a waiting stream fail, which happens only after the client has received something. */
  breakStream(): void
}

/** The response to a request, and the size of its chunks in bytes; default: one packet per event. */
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
  if (status !== undefined) return whole(wire.failure(status, `rejected with ${status}, as requested`), { status })
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

/** The first unknown member, which a strict provider refuses. */
export const unknownFieldIn = (value: object, known: readonly string[]): string | undefined =>
  Object.keys(value).find((name) => !known.includes(name))
