/** A chat-completions vendor asked by a client that speaks as it does: the same request, its answer left as bytes. */
import type { ChatChunk } from '../../spec/chat-completion.ts'
import type { ChatCall, RelayProvider } from '../provider.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import type { Faults } from './reading.ts'

/** A call, with what the client's own headers ask of the vendor. */
export type Asking = ChatCall & { headers?: Record<string, string> }

/** What the relay lane needs of an adapter. */
export type RelayParts = {
  /** Sends a call and hands back an answer of status 2xx; everything else is thrown. */
  ask(call: Asking, signal: AbortSignal, stream: boolean): Promise<UpstreamAnswer>
  /** The chunks of an answer to a request for a stream. */
  chunksIn(answer: UpstreamAnswer, call: ChatCall): AsyncIterable<ChatChunk[]>
  faultsOf(model: string): Faults
}

/** The request is written as always: of unknown fields, a vendor sees those that its operator allows. */
export const createRelay = ({ ask, chunksIn, faultsOf }: RelayParts): RelayProvider => ({
  dialect: 'chatcompat',
  async send(call, stream, signal) {
    const answer = await ask(call, signal, stream)
    if (stream && !(await isEventStream(answer))) return chunksIn(answer, call)
    return { ...answer, faults: faultsOf(call.model) }
  },
})

/** By its label, and by its first byte where that lies: no event stream begins as an object does. */
export async function isEventStream(answer: UpstreamAnswer): Promise<boolean> {
  const type = answer.headers.get('content-type') ?? ''
  if (type.includes('text/html') || /^[^;]*\bjson\b/.test(type)) return false
  const first = (await answer.peek())?.find((byte) => byte > 32) // 9, 10, 13 and 32 are white space
  return first !== 123
}

/** Headers that are lists, of which the client and the operator may each have a part. */
const LISTS = new Set(['anthropic-beta', 'openai-beta'])

/** The operator's headers with the client's. Of the same header the operator's counts, unless it is a list: then both. */
export function withClientHeaders(own: Record<string, string>, client: Record<string, string> = {}) {
  const headers = { ...client, ...own }
  for (const name of LISTS) {
    const [asked, set] = [client[name], own[name]]
    if (asked === undefined || set === undefined) continue
    headers[name] = [...new Set([...set.split(','), ...asked.split(',')].map((one) => one.trim()))].join(',')
  }
  return headers
}
