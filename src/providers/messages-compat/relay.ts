/** A messages vendor asked by a client that speaks as it does: its own body, but for what the house and the operator demand. */

import type { JsonRecord } from '../../kit/json.ts'
import type { ChatChunk } from '../../spec/chat-completion.ts'
import type { Faults } from '../chatcompat/reading.ts'
import { isEventStream } from '../chatcompat/relay.ts'
import type { ChatCall, RelayCall, RelayProvider } from '../provider.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import { ruleOf } from './model-rules.ts'
import type { MessagesSettings } from './settings.ts'

type RelayParts = {
  settings: MessagesSettings
  /** Sends a body and hands back an answer of status 2xx; everything else is thrown. */
  ask(asked: { body: string; call: RelayCall; stream: boolean }, signal: AbortSignal): Promise<UpstreamAnswer>
  /** The chunks of an answer to a request for a stream. */
  chunksIn(answer: UpstreamAnswer, call: ChatCall): AsyncIterable<ChatChunk[]>
  faultsOf(model: string, answer: UpstreamAnswer): Faults
}

export const createRelay = ({ settings, ask, chunksIn, faultsOf }: RelayParts): RelayProvider => ({
  dialect: 'messages-compat',
  async send(call, stream, signal) {
    const answer = await ask({ body: JSON.stringify(relayedBody(call, settings)), call, stream }, signal)
    if (stream && !(await isEventStream(answer))) return chunksIn(answer, call)
    return { ...answer, faults: faultsOf(call.model, answer) }
  },
})

/** Fields that are the house's to say. */
const OURS = new Set(['model', 'messages', 'stream'])
/** Where the model's row in the catalogue has a default for them. */
const SAMPLING = ['temperature', 'top_p'] as const

/** The client's body for this vendor: the model's name, the limits and defaults of its row, the operator's settings. */
export function relayedBody({ model, body, request }: RelayCall, settings: MessagesSettings): JsonRecord {
  const rule = { ...ruleOf(model), ...settings.rule }
  const relayed: JsonRecord = { ...body, model }
  if (request.max_tokens !== undefined) relayed.max_tokens = request.max_tokens
  const thinking = body.thinking as { type?: unknown } | null | undefined
  const isThinking = thinking != null && thinking.type !== 'disabled'
  // The newer models take one of the two.
  const isSampled = SAMPLING.some((field) => body[field] != null)
  if (rule.sampling && !isThinking && !isSampled) {
    const field = SAMPLING.find((name) => request[name] !== undefined)
    if (field) relayed[field] = request[field]
  }
  for (const [field, value] of Object.entries(settings.request_defaults)) if (!OURS.has(field)) relayed[field] ??= value
  for (const field of settings.fields.drop) if (!OURS.has(field)) delete relayed[field]
  for (const [field, name] of Object.entries(settings.fields.rename)) {
    if (OURS.has(field) || OURS.has(name) || relayed[field] === undefined) continue
    relayed[name] = relayed[field]
    delete relayed[field]
  }
  return relayed
}
