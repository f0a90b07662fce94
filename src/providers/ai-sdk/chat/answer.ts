/** What a package hands back of an answer, whole, in the specification's words. */
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { ChatCompletion, Opaque, Reasoning, ToolCall } from '../../../protocols/canonical.ts'
import { type Fallback, newToolCallId } from '../../../protocols/upstream.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import type { ChatModel, ChatVendor, Content, PackageFinish, PackageUsage } from './vendor.ts'

type Generated = Awaited<ReturnType<ChatModel['doGenerate']>>
export type Named = Fallback & { vendor: ChatVendor }

/** null: the answer ended without a finish, or the vendor broke it off. */
export function answerOf(generated: Generated, named: Named): ChatCompletion | null {
  const { content, finishReason, providerMetadata, response } = generated
  const calls = content.flatMap((part) => callOf(part, named) ?? [])
  const finish_reason = finishOf(finishReason, calls.length > 0)
  if (finish_reason === null) return null
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const reasoning = content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')
  const details = content.flatMap((part) => reasoningOf(part, named))
  const annotations = content.flatMap((part) => annotationOf(part, text.length) ?? [])
  const usage = usageOf(generated.usage)
  const stop_sequence = stopSequenceOf(providerMetadata, named.vendor)
  return {
    id: response?.id ?? named.id,
    object: 'chat.completion',
    created: named.created,
    model: named.model,
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

function callOf(part: Content, named: Named): ToolCall | undefined {
  if (part.type !== 'tool-call' || part.providerExecuted) return undefined
  const opaque = opaqueOf(part.providerMetadata, named)
  return {
    id: part.toolCallId || newToolCallId(),
    type: 'function',
    function: { name: part.toolName, arguments: part.input },
    ...(opaque ? { opaque } : {}),
  }
}

function reasoningOf(part: Content, named: Named): Reasoning[] {
  if (part.type !== 'reasoning') return []
  const opaque = opaqueOf(part.providerMetadata, named)
  if (part.text === '' && !opaque) return []
  return [{ ...(part.text === '' ? {} : { text: part.text }), ...(opaque ? { opaque } : {}) }]
}

/** Where a source is told, not which words it stands behind: the packages do not know those. */
export function annotationOf(
  part: { type: string; url?: unknown; title?: unknown },
  at: number,
): Annotation | undefined {
  if (part.type !== 'source' || typeof part.url !== 'string') return undefined
  const title = typeof part.title === 'string' ? part.title : part.url
  return { type: 'url_citation', url_citation: { start_index: at, end_index: at, url: part.url, title } }
}

/** What the vendor wants back, of which its package made metadata. */
export function opaqueOf(metadata: SharedV4ProviderMetadata | undefined, { vendor, model }: Named): Opaque | undefined {
  const { signs, namespace } = vendor
  const own = metadata?.[namespace]
  if (!own || !signs || (signs.models && !signs.models.test(model))) return undefined
  const value = [signs.shown, ...(signs.hidden ?? [])]
    .map((member) => own[member])
    .find((one) => typeof one === 'string')
  return typeof value === 'string' && value !== '' ? { origin: signs.origin, value } : undefined
}

export function stopSequenceOf(
  metadata: SharedV4ProviderMetadata | undefined,
  { namespace }: ChatVendor,
): string | undefined {
  const value = metadata?.[namespace]?.stopSequence
  return typeof value === 'string' ? value : undefined
}

/** null: no end, since the package made this one up, or the vendor failed. */
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
  // Clients look for calls only under this word, and some vendors say `stop` after them.
  return hasCalls ? 'tool_calls' : 'stop'
}

/** undefined where the vendor told nothing: no prompt is empty. */
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
