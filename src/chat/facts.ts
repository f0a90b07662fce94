/** What routing may need to know of a chat request. */
import type { ChatRequest } from '../protocols/canonical.ts'
import { roughTokens } from '../protocols/token-estimate.ts'
import type { RequestFacts } from '../routing/conditions.ts'

/**
 * How long an answer is expected to be, for the comparison of prices. `max_tokens` is a limit that clients set far above
 * what they expect, so it counts only where it is lower.
 */
export const USUAL_OUTPUT_TOKENS = 500

/** Of requests that are sent together, such as the prompts of one text completion. */
export function chatFacts(requests: readonly ChatRequest[]): RequestFacts {
  let input: number | undefined
  return {
    hasTools: () => requests.some(({ tools, functions }) => (tools ?? functions ?? []).length > 0),
    hasImages: () => requests.some(({ messages }) => messages.some(hasImage)),
    inputTokens() {
      input ??= requests.reduce((sum, request) => sum + roughTokens(request), 0)
      return input
    },
    outputTokens: () =>
      requests.reduce(
        (sum, { n, max_tokens }) => sum + (n ?? 1) * Math.min(max_tokens ?? USUAL_OUTPUT_TOKENS, USUAL_OUTPUT_TOKENS),
        0,
      ),
  }
}

const hasImage = ({ content }: ChatRequest['messages'][number]): boolean =>
  Array.isArray(content) && content.some(({ type }) => type === 'image_url')
