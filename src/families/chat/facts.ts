/** Computes what routing may need to know of a chat request. */
import type { RequestFacts } from '../../calls/routing/conditions.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import { roughTokens } from '../../protocols/shared/token-estimate.ts'

/**
 * How long an answer is expected to be, for the comparison of prices. `max_tokens` is a limit that clients set far above
 * what they expect, so it counts only where it is lower.
 */
export const USUAL_OUTPUT_TOKENS = 500

/** Of requests that are sent together, such as the prompts of one text completion. */
export const chatFacts = (requests: readonly ChatRequest[]): RequestFacts => new ChatFacts(requests)

class ChatFacts implements RequestFacts {
  readonly #requests: readonly ChatRequest[]
  #input: number | undefined

  constructor(requests: readonly ChatRequest[]) {
    this.#requests = requests
  }

  hasTools(): boolean {
    return this.#requests.some(({ tools, functions = [] }) => (tools ?? functions).length > 0)
  }

  hasImages(): boolean {
    return this.#requests.some(({ messages }) => messages.some(hasImage))
  }

  inputTokens(): number {
    this.#input ??= this.#requests.reduce((sum, request) => sum + roughTokens(request), 0)
    return this.#input
  }

  outputTokens(): number {
    return this.#requests.reduce(
      (sum, { n = 1, max_tokens = USUAL_OUTPUT_TOKENS }) => sum + n * Math.min(max_tokens, USUAL_OUTPUT_TOKENS),
      0,
    )
  }
}

const hasImage = ({ content }: ChatRequest['messages'][number]): boolean =>
  Array.isArray(content) && content.some(({ type }) => type === 'image_url')
