/**
 * What the spans of a call say of it: the attributes of OpenTelemetry's semantic conventions 1.41 for HTTP and for
 * generative AI, and `gatehouse.*` for the rest. Ids, names and numbers only; contents are added elsewhere.
 */
import type { CallRecord } from '../../calls/call.ts'
import type { Attempt } from '../../calls/routing/attempt.ts'
import type { FinishedRequest } from '../../http/context.ts'
import type { Provider } from '../../providers/provider.ts'
import type { CallFamily } from '../../spec/endpoint-family.ts'
import type { SpanAttributes } from './span.ts'

const OPERATIONS: Record<CallFamily, string> = {
  chatcompat: 'chat',
  'chatcompat-response': 'chat',
  'messages-compat': 'chat',
  'contentgen-compat': 'generate_content',
  rerank: 'rerank',
  embeddings: 'embeddings',
  moderations: 'moderation',
  'audio-speech': 'speech',
  'audio-transcription': 'transcription',
  realtime: 'realtime',
  'image-generation': 'generate_content',
  'video-generation': 'generate_content',
  '3d-generation': 'generate_content',
  'chatcompat-video': 'generate_content',
  mcp: 'execute_tool',
  passthrough: 'passthrough',
}

export const operationOf = (family: CallFamily): string => OPERATIONS[family]

/** The names that the conventions list, where ours differ. By kind, or by the operator's id of a provider. */
const PROVIDER_NAMES: Record<string, string> = {
  'amazon-bedrock': 'aws.bedrock',
  azure: 'azure.ai.openai',
  gemini: 'gcp.gemini',
  google: 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  moonshotai: 'moonshot_ai',
  xai: 'x_ai',
}
/** Kinds that are an API which many providers have: their id says more. */
const GENERAL_KINDS = /compat/

export function providerName({ id, kind }: Pick<Provider, 'id' | 'kind'>): string {
  const name = GENERAL_KINDS.test(kind) ? id : kind
  return Object.hasOwn(PROVIDER_NAMES, name) ? (PROVIDER_NAMES[name] ?? name) : name
}

export const requestAttributes = ({ context, path, status, outcome }: FinishedRequest): SpanAttributes => ({
  'http.request.method': context.request.method,
  'http.route': context.route,
  'url.path': path,
  'http.response.status_code': status,
  'error.type': context.note.error,
  'gatehouse.request_id': context.request_id,
  'gatehouse.token_id': context.note.token_id,
  'gatehouse.outcome': outcome,
  'gatehouse.websocket': context.note.websocket,
})

export function callAttributes(record: CallRecord): SpanAttributes {
  const { call, family, model, requested, is_stream, cache, queued_ms, error } = record
  const charged = record.entries?.[0]?.amount
  return {
    'gen_ai.operation.name': operationOf(family),
    'gen_ai.request.model': requested ?? model ?? call.plan?.name,
    'gen_ai.response.model': model,
    'gen_ai.request.stream': is_stream || undefined,
    'gen_ai.output.type': family === 'image-generation' ? 'image' : undefined,
    ...usageAttributes(record),
    'error.type': error,
    'gatehouse.request_id': call.request_id,
    'gatehouse.token_id': call.caller.token_id,
    'gatehouse.project_id': call.caller.project_id,
    'gatehouse.tags': call.options?.tags,
    'gatehouse.attempts': record.attempts.length,
    'gatehouse.cache': cache,
    'gatehouse.queued_ms': queued_ms === undefined ? undefined : Math.round(queued_ms),
    'gatehouse.cost': typeof charged === 'number' ? charged / 1e9 : undefined,
  }
}

/** Whether an attempt serves the call: it is the last one that has neither failed nor lost. */
export const isServing = (attempt: Attempt, { attempts }: Pick<CallRecord, 'attempts'>): boolean =>
  attempt === attempts.findLast(({ error, is_lost }) => error === undefined && !is_lost)

export function attemptAttributes(attempt: Attempt, record: CallRecord, number: number): SpanAttributes {
  const { target, error, upstream_status, is_hedge, is_lost, next, ms } = attempt
  const serves = isServing(attempt, record)
  return {
    'gen_ai.operation.name': operationOf(record.family),
    'gen_ai.provider.name': providerName(target.provider),
    'gen_ai.request.model': target.model,
    'gen_ai.request.stream': record.is_stream || undefined,
    'gen_ai.output.type': record.family === 'image-generation' ? 'image' : undefined,
    ...(serves ? usageAttributes(record) : {}),
    'gen_ai.response.time_to_first_chunk':
      serves && record.is_stream && ms !== undefined ? Math.round(ms) / 1000 : undefined,
    'error.type': error ?? (serves ? brokenBy(record) : undefined),
    'http.response.status_code': upstream_status,
    'gatehouse.provider': target.provider.id,
    'gatehouse.key': target.key,
    'gatehouse.attempt': number,
    'gatehouse.attempt.next': next,
    'gatehouse.attempt.hedge': is_hedge || undefined,
    'gatehouse.attempt.lost': is_lost || undefined,
  }
}

/** The error of a response that broke after its first part; the client's leaving is none of its provider. */
export const brokenBy = ({ error }: CallRecord): string | undefined =>
  error === 'client_closed_request' ? undefined : error

function usageAttributes({ units }: CallRecord): SpanAttributes {
  if (!units) return {}
  const { cached_tokens, cache_write_tokens, cache_write_1h_tokens, reasoning_tokens } = units
  const written = (cache_write_tokens ?? 0) + (cache_write_1h_tokens ?? 0)
  return {
    'gen_ai.usage.input_tokens': units.input_tokens,
    'gen_ai.usage.output_tokens': units.output_tokens,
    'gen_ai.usage.cache_read.input_tokens': cached_tokens,
    'gen_ai.usage.cache_creation.input_tokens': written || undefined,
    'gen_ai.usage.reasoning.output_tokens': reasoning_tokens,
    'gatehouse.usage.estimated': units.estimated || undefined,
  }
}
