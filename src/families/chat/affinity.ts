/** Which chat calls belong together, so that one target finds the beginning of the prompt in its cache. */
import { hash32 } from '../../kit/secret.ts'
import type { ChatRequest, Message } from '../../protocols/shared/canonical.ts'

/**
 * The same number for calls that share the beginning of their prompt: by the client's own key, otherwise (`prefix`) by the
 * tools and the messages up to the first one of the user. Tokens are kept apart, since some providers keep caches apart too.
 */
export function affinityOf(
  request: ChatRequest,
  token_id: string,
  sticky: 'conversation' | 'prefix',
): number | undefined {
  const own = hash32(token_id)
  if (typeof request.prompt_cache_key === 'string') return hash32(request.prompt_cache_key, own)
  if (sticky === 'conversation') return undefined
  let hash = own
  for (const tool of request.tools ?? []) hash = hash32(JSON.stringify(tool), hash)
  for (const message of request.messages) {
    hash = hash32(textOf(message), hash)
    if (message.role === 'user') break
  }
  return hash
}

const textOf = ({ content }: Message): string => (typeof content === 'string' ? content : JSON.stringify(content ?? ''))
