/** Converts a whole response of a package into a chat completion. */
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { ChatCompletion, Opaque, Reasoning, ToolCall } from '../../../protocols/shared/canonical.ts'
import { type Fallback, newToolCallId } from '../../../protocols/shared/upstream.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import type { ChatModel, ChatVendor, Content, PackageFinish, PackageUsage } from './chat-family.ts'

type Generated = Awaited<ReturnType<ChatModel['doGenerate']>>
/** What the completion has where the vendor gives nothing, and whose it is. */
export type ResponseIdentity = Fallback & { vendor: ChatVendor }

/** null: the response ended without a finish reason, or the vendor aborted it. */
export function completionOf(generated: Generated, identity: ResponseIdentity): ChatCompletion | null {
  const { content, finishReason, providerMetadata, response } = generated
  const calls = content.flatMap((part) => callOf(part, identity) ?? [])
  const finish_reason = finishOf(finishReason, calls.length > 0)
  if (finish_reason === null) return null
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const reasoning = content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')
  const details = content.flatMap((part) => reasoningOf(part, identity))
  const annotations = content.flatMap((part) => annotationOf(part, text.length) ?? [])
  const usage = usageOf(generated.usage)
  const stop_sequence = stopSequenceOf(providerMetadata, identity.vendor)
  return {
    id: response?.id ?? identity.id,
    object: 'chat.completion',
    created: identity.created,
    model: identity.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && calls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
          ...(details.some(({ opaque }) => opaque) ? { reasoning_details: details } : {}),
          ...(calls.length > 0 ? { tool_calls: calls } : {}),
          ...(annotations.length > 0 ? { annotations } : {}),
        },
        finish_reason,
        ...(stop_sequence === undefined ? {} : { stop_sequence }),
        logprobs: null,
      },
    ],
    ...(usage ? { usage } : {}),
  }
}

function callOf(part: Content, identity: ResponseIdentity): ToolCall | undefined {
  if (part.type !== 'tool-call' || part.providerExecuted) return undefined
  const opaque = opaqueOf(part.providerMetadata, identity)
  return {
    id: part.toolCallId || newToolCallId(),
    type: 'function',
    function: { name: part.toolName, arguments: part.input },
    ...(opaque ? { opaque } : {}),
  }
}

function reasoningOf(part: Content, identity: ResponseIdentity): Reasoning[] {
  if (part.type !== 'reasoning') return []
  const opaque = opaqueOf(part.providerMetadata, identity)
  if (part.text === '' && !opaque) return []
  return [{ ...(part.text === '' ? {} : { text: part.text }), ...(opaque ? { opaque } : {}) }]
}

/** The position at which a source came; the packages do not know which text it supports. */
export function annotationOf(
  part: { type: string; url?: unknown; title?: unknown },
  at: number,
): Annotation | undefined {
  if (part.type !== 'source' || typeof part.url !== 'string') return undefined
  const title = typeof part.title === 'string' ? part.title : part.url
  return { type: 'url_citation', url_citation: { start_index: at, end_index: at, url: part.url, title } }
}

/** The vendor's signature, to be sent back later, from the package's metadata. */
export function opaqueOf(
  metadata: SharedV4ProviderMetadata | undefined,
  { vendor, model }: ResponseIdentity,
): Opaque | undefined {
  const { signature, namespace } = vendor
  const own = metadata?.[namespace]
  if (!own || !signature || (signature.models && !signature.models.test(model))) return undefined
  const value = [signature.shown, ...(signature.hidden ?? [])]
    .map((member) => own[member])
    .find((one) => typeof one === 'string')
  return typeof value === 'string' && value !== '' ? { origin: signature.origin, value } : undefined
}

export function stopSequenceOf(
  metadata: SharedV4ProviderMetadata | undefined,
  { namespace }: ChatVendor,
): string | undefined {
  const value = metadata?.[namespace]?.stopSequence
  return typeof value === 'string' ? value : undefined
}

/** null: the package invented this finish reason, or the vendor failed. */
export function finishOf({ unified, raw }: PackageFinish, hasCalls: boolean): FinishReason | null {
  switch (unified) {
    case 'length':
      return 'length'
    case 'content-filter':
      return 'content_filter'
    case 'tool-calls':
      return 'tool_calls'
    case 'error':
    case 'interrupted':
      return null
    case 'other':
      if (raw === undefined) return null
  }
  // Clients look for calls only after this finish reason, and some vendors return `stop` with them.
  return hasCalls ? 'tool_calls' : 'stop'
}

/** undefined where the vendor reported nothing: no prompt has zero tokens. */
export function usageOf({ inputTokens, outputTokens }: PackageUsage): Usage | undefined {
  const input = inputTokens.total
  const output = outputTokens.total
  if (!input && !output) return undefined
  return usageFrom({
    input: count(input) ?? 0,
    output: count(output) ?? 0,
    cached: count(inputTokens.cacheRead),
    cache_write: count(inputTokens.cacheWrite),
    reasoning: count(outputTokens.reasoning),
  })
}

const count = (value: number | undefined) =>
  value !== undefined && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined
