/** The response headers that name the target of a call. */
import type { ServerSettings } from '../config/config.ts'
import { headerValue } from '../kit/header-value.ts'
import type { Call } from '../pipeline/call.ts'
import { targetName } from '../providers/provider.ts'
import { explanationText, HEADER_CHARACTERS } from './explanation.ts'

/**
 * The target that answered, or failed last, and how many upstream calls were made; the model, where a fallback served the
 * call. Empty for a request without upstream calls.
 */
export function routingHeaders(
  { record }: Call,
  { show_target }: Pick<ServerSettings, 'show_target'>,
): [string, string][] {
  if (record?.target === undefined) return []
  const headers: [string, string][] = []
  if (show_target) {
    headers.push(['x-gatehouse-target', headerValue(targetName(record.target))])
    headers.push(['x-gatehouse-attempts', String(record.attempts.length)])
  }
  if (record.requested !== undefined) {
    headers.push(['x-model-requested', headerValue(record.requested)])
    headers.push(['x-model-served', headerValue(record.model ?? '')])
  }
  const explanation = explanationText(record, HEADER_CHARACTERS)
  if (explanation !== undefined) headers.push(['x-gatehouse-explain', explanation])
  return headers
}
