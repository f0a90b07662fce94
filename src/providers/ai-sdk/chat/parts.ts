/** A package's stream of parts as chunks in the specification's words. */

import type { ChatChunk, Delta, ToolCall } from '../../../protocols/canonical.ts'
import { newToolCallId } from '../../../protocols/upstream.ts'
import { annotationOf, finishOf, type Named, opaqueOf, stopSequenceOf, usageOf } from './answer.ts'
import type { StreamPart } from './vendor.ts'

type PartReader = {
  /** The chunk that a part becomes; nothing for a part that says nothing to a client. */
  take(part: StreamPart): ChatChunk | undefined
  /** Whether the vendor said why it ended. */
  isFinished(): boolean
}

type Call = { index: number; hasArguments: boolean; hasOpaque: boolean }
type Part<Type extends StreamPart['type']> = Extract<StreamPart, { type: Type }>

export function createPartReader(named: Named): PartReader {
  let id = named.id
  let hasRole = false
  let isFinished = false
  let length = 0
  const calls = new Map<string, Call>()
  /** What of a piece of reasoning was told so far: its signature may come with any of its parts. */
  const thoughts = new Map<string, { text: string; isSigned: boolean }>()

  function chunkOf(delta: Delta): ChatChunk {
    const role = hasRole ? {} : { role: 'assistant' as const }
    hasRole = true
    return {
      id,
      object: 'chat.completion.chunk',
      created: named.created,
      model: named.model,
      choices: [{ index: 0, delta: { ...role, ...delta }, finish_reason: null }],
    }
  }
  const callChunk = (call: ToolCall) => chunkOf({ tool_calls: [call] })

  function reasoning(part: Part<'reasoning-start' | 'reasoning-delta' | 'reasoning-end'>): ChatChunk | undefined {
    const thought = thoughts.get(part.id) ?? { text: '', isSigned: false }
    thoughts.set(part.id, thought)
    const words = part.type === 'reasoning-delta' ? part.delta : ''
    thought.text += words
    const opaque = thought.isSigned ? undefined : opaqueOf(part.providerMetadata, named)
    if (opaque) thought.isSigned = true
    const { text } = thought
    if (part.type === 'reasoning-end') thoughts.delete(part.id)
    if (words === '' && !opaque) return undefined
    return chunkOf({
      ...(words === '' ? {} : { reasoning_content: words }),
      ...(opaque ? { reasoning_details: [{ ...(text === '' ? {} : { text }), opaque }] } : {}),
    })
  }

  function startCall(part: Part<'tool-input-start'>): ChatChunk | undefined {
    if (part.providerExecuted) return undefined
    const opaque = opaqueOf(part.providerMetadata, named)
    const call = { index: calls.size, hasArguments: false, hasOpaque: opaque !== undefined }
    calls.set(part.id, call)
    return callChunk({
      index: call.index,
      id: part.id || newToolCallId(),
      type: 'function',
      function: { name: part.toolName, arguments: '' },
      ...(opaque ? { opaque } : {}),
    })
  }

  function continueCall({ id: called, delta }: Part<'tool-input-delta'>): ChatChunk | undefined {
    const call = calls.get(called)
    if (!call || delta === '') return undefined
    call.hasArguments = true
    return callChunk({ index: call.index, function: { arguments: delta } })
  }

  function endCall(part: Part<'tool-call'>): ChatChunk | undefined {
    if (part.providerExecuted) return undefined
    const opaque = opaqueOf(part.providerMetadata, named)
    const call = calls.get(part.toolCallId)
    if (!call) {
      const index = calls.size
      calls.set(part.toolCallId, { index, hasArguments: true, hasOpaque: true })
      return callChunk({
        index,
        id: part.toolCallId || newToolCallId(),
        type: 'function',
        function: { name: part.toolName, arguments: part.input },
        ...(opaque ? { opaque } : {}),
      })
    }
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
    const stop_sequence = stopSequenceOf(providerMetadata, named.vendor)
    const chunk = chunkOf({})
    chunk.choices = [{ index: 0, delta: {}, finish_reason, ...(stop_sequence === undefined ? {} : { stop_sequence }) }]
    if (counts) chunk.usage = counts
    return chunk
  }

  return {
    isFinished: () => isFinished,
    take(part) {
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
          return startCall(part)
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
