/** Decodes the parts of a package's stream to chat chunks. */
import type { ChatChunk, Delta, ToolCall } from '../../../protocols/shared/canonical.ts'
import { newToolCallId } from '../../../protocols/shared/upstream.ts'
import type { StreamPart } from './chat-family.ts'
import { annotationOf, finishOf, opaqueOf, type ResponseIdentity, stopSequenceOf, usageOf } from './completion.ts'

type Call = { index: number; hasArguments: boolean; hasOpaque: boolean }
type Part<Type extends StreamPart['type']> = Extract<StreamPart, { type: Type }>

export function createPartReader(identity: ResponseIdentity) {
  let id = identity.id
  let hasRole = false
  let isFinished = false
  let length = 0
  const calls = new Map<string, Call>()
  /** The text so far of a piece of reasoning: its signature may come with any of its parts. */
  const reasonings = new Map<string, { text: string; isSigned: boolean }>()

  function chunkOf(delta: Delta): ChatChunk {
    const role = hasRole ? {} : { role: 'assistant' as const }
    hasRole = true
    return {
      id,
      object: 'chat.completion.chunk',
      created: identity.created,
      model: identity.model,
      choices: [{ index: 0, delta: { ...role, ...delta }, finish_reason: null }],
    }
  }
  const callChunk = (call: ToolCall) => chunkOf({ tool_calls: [call] })

  function reasoning(part: Part<'reasoning-start' | 'reasoning-delta' | 'reasoning-end'>): ChatChunk | undefined {
    const piece = reasonings.get(part.id) ?? { text: '', isSigned: false }
    reasonings.set(part.id, piece)
    const delta = part.type === 'reasoning-delta' ? part.delta : ''
    piece.text += delta
    const opaque = piece.isSigned ? undefined : opaqueOf(part.providerMetadata, identity)
    if (opaque) piece.isSigned = true
    const { text } = piece
    if (part.type === 'reasoning-end') reasonings.delete(part.id)
    if (delta === '' && !opaque) return undefined
    return chunkOf({
      ...(delta === '' ? {} : { reasoning_content: delta }),
      ...(opaque ? { reasoning_details: [{ ...(text === '' ? {} : { text }), opaque }] } : {}),
    })
  }

  /** `input`: that of a call which comes whole. */
  function startCall(
    { id, toolName: name, providerMetadata }: Omit<Part<'tool-input-start'>, 'type'>,
    input?: string,
  ): ChatChunk {
    const opaque = opaqueOf(providerMetadata, identity)
    const index = calls.size
    const isWhole = input !== undefined
    calls.set(id, { index, hasArguments: isWhole, hasOpaque: isWhole || opaque !== undefined })
    return callChunk({
      index,
      id: id || newToolCallId(),
      type: 'function',
      function: { name, arguments: input ?? '' },
      ...(opaque ? { opaque } : {}),
    })
  }

  function continueCall({ id: callId, delta }: Part<'tool-input-delta'>): ChatChunk | undefined {
    const call = calls.get(callId)
    if (!call || delta === '') return undefined
    call.hasArguments = true
    return callChunk({ index: call.index, function: { arguments: delta } })
  }

  function endCall(part: Part<'tool-call'>): ChatChunk | undefined {
    if (part.providerExecuted) return undefined
    const call = calls.get(part.toolCallId)
    if (!call) return startCall({ ...part, id: part.toolCallId }, part.input)
    const opaque = opaqueOf(part.providerMetadata, identity)
    const missing = call.hasArguments ? '' : part.input
    const late = opaque && !call.hasOpaque ? { opaque } : {}
    call.hasArguments = true
    call.hasOpaque = true
    if (missing === '' && !('opaque' in late)) return undefined
    return callChunk({ index: call.index, function: { arguments: missing }, ...late })
  }

  function finish({ finishReason, usage, providerMetadata }: Part<'finish'>): ChatChunk | undefined {
    const finish_reason = finishOf(finishReason, calls.size > 0)
    if (finish_reason === null) return undefined
    isFinished = true
    const counts = usageOf(usage)
    const stop_sequence = stopSequenceOf(providerMetadata, identity.vendor)
    const chunk = chunkOf({})
    chunk.choices = [{ index: 0, delta: {}, finish_reason, ...(stop_sequence === undefined ? {} : { stop_sequence }) }]
    if (counts) chunk.usage = counts
    return chunk
  }

  return {
    isFinished: () => isFinished,
    /** undefined for a part that has nothing for a client. */
    decode(part: StreamPart): ChatChunk | undefined {
      switch (part.type) {
        case 'response-metadata':
          id = part.id ?? id
          return undefined
        case 'text-delta':
          length += part.delta.length
          return part.delta === '' ? undefined : chunkOf({ content: part.delta })
        case 'reasoning-start':
        case 'reasoning-delta':
        case 'reasoning-end':
          return reasoning(part)
        case 'tool-input-start':
          return part.providerExecuted ? undefined : startCall(part)
        case 'tool-input-delta':
          return continueCall(part)
        case 'tool-call':
          return endCall(part)
        case 'source': {
          const annotation = annotationOf(part, length)
          return annotation ? chunkOf({ annotations: [annotation] }) : undefined
        }
        case 'finish':
          return finish(part)
        default:
          return undefined
      }
    },
  }
}
