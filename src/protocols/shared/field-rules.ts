/** Fields of requests to providers: those that no vendor takes, and the operator's lists of dropped and renamed ones. */
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { ChatRequest } from './canonical.ts'
import { refusedField } from './request-error.ts'
import type { FieldRules } from './upstream.ts'

/** Fields of a chat request that a vendor does not support, and what its value must be or be replaced by. */
export type RefusedFields = {
  [field in keyof ChatRequest]?: { isUsed(request: ChatRequest): boolean; instead: string }
}

/** Whether an earlier answer is audio, which only the provider that spoke it has. */
export const hasAudioHistory = ({ messages }: ChatRequest): boolean => messages.some(({ audio }) => audio)

export const NO_AUDIO_HISTORY = 'must have no "audio" of the assistant: only the provider that spoke it has it'

/** Whether leaving a field out would change the response. */
export const HAS_EFFECT = {
  tools: ({ tools }) => (tools?.length ?? 0) > 0,
  tool_choice: ({ tool_choice }) => tool_choice !== undefined && tool_choice !== 'auto',
  functions: ({ functions }) => (functions?.length ?? 0) > 0,
  function_call: ({ function_call }) => typeof function_call === 'object',
  response_format: ({ response_format }) => response_format !== undefined && response_format.type !== 'text',
  n: ({ n = 1 }) => n > 1,
  logprobs: ({ logprobs }) => logprobs === true,
  stop: ({ stop }) => (stop?.length ?? 0) > 0,
  audio: ({ audio }) => audio !== undefined,
  modalities: ({ modalities }) => modalities?.some((one) => one !== 'text') ?? false,
} satisfies { [field in keyof ChatRequest]?: (request: ChatRequest) => boolean }

/** Fields that the chat API itself has replaced, and earlier answers that another vendor has. */
export const REPLACED_FIELDS: RefusedFields = {
  messages: { isUsed: hasAudioHistory, instead: NO_AUDIO_HISTORY },
  functions: { isUsed: HAS_EFFECT.functions, instead: 'is not supported by the vendor; use "tools"' },
  function_call: { isUsed: HAS_EFFECT.function_call, instead: 'is not supported by the vendor; use "tool_choice"' },
}

/** Throws `unsupported_parameter` for the first of these fields that is used. */
export function assertNotRefused(request: ChatRequest, fields: RefusedFields): void {
  for (const [field, { isUsed, instead }] of Object.entries(fields)) {
    if (isUsed(request)) throw refusedField(field, `${instead} for the model "${request.model}"`)
  }
}

/** Drops and renames fields, except those that the gateway sets. `generationConfig.seed` names a nested member. */
export function adapt(
  body: JsonRecord,
  { drop, rename }: Pick<FieldRules, 'drop' | 'rename'>,
  ours: ReadonlySet<string>,
): JsonRecord {
  const adapted = { ...body }
  const place = (path: string): [JsonRecord, string] => {
    const [name = '', member] = path.split('.', 2)
    const inner = adapted[name]
    if (member === undefined || !isRecord(inner)) return [adapted, path]
    const copy = { ...inner }
    adapted[name] = copy
    return [copy, member]
  }
  for (const path of drop) {
    const [holder, name] = place(path)
    if (!ours.has(name)) delete holder[name]
  }
  for (const [path, name] of Object.entries(rename)) {
    const [holder, old] = place(path)
    if (ours.has(old) || ours.has(name) || holder[old] === undefined) continue
    holder[name] = holder[old]
    delete holder[old]
  }
  return adapted
}
