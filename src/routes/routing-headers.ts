/** The response headers that name the target of a call. */
import type { ServerSettings } from '../config/config.ts'
import { headerValue } from '../kit/header-value.ts'
import type { Call } from '../pipeline/call.ts'
import { targetName } from '../providers/provider.ts'

/** The target that answered, or failed last, and how many upstream calls were made; empty for a request without any. */
export function routingHeaders(
  { record }: Call,
  { show_target }: Pick<ServerSettings, 'show_target'>,
): [string, string][] {
  if (!show_target || record?.target === undefined) return []
  return [
    ['x-gatehouse-target', headerValue(targetName(record.target))],
    ['x-gatehouse-attempts', String(record.attempts.length)],
  ]
}
