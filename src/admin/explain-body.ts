/** Reads from a request body what routing needs, where a route is only explained. */
import type { RequestFacts } from '../calls/routing/conditions.ts'
import { chatFacts } from '../families/chat/facts.ts'
import { isRecord } from '../kit/json.ts'
import { parseChatRequest } from '../protocols/chatcompat/client/request.ts'
import { parseTextCompletion } from '../protocols/chatcompat/client/text-request.ts'
import { parseContentgen } from '../protocols/contentgen/client/request.ts'
import { parseMessages } from '../protocols/messages/client/request.ts'
import { checkedRequest, translatedRequest } from '../protocols/responses/client/request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'

/** The member of a body that holds its input, without which nothing is known of it. */
const INPUTS = ['messages', 'prompt', 'input', 'contents']

/**
 * Whether it has tools and images, and its size, as for a call of this family; undefined: not known. Of a body that refers to
 * stored items only what it contains counts. Throws GatewayError that names the field and its rule.
 */
export function factsOf(body: unknown, family: EndpointFamily): RequestFacts | undefined {
  if (!isRecord(body) || !INPUTS.some((name) => name in body)) return undefined
  switch (family) {
    case 'chatcompat':
      return chatFacts('prompt' in body ? parseTextCompletion(body).requests : [parseChatRequest(body)])
    case 'messages-compat':
      return chatFacts([parseMessages(body)])
    case 'chatcompat-response':
      return chatFacts([translatedRequest(checkedRequest(body), { items: [], ids: [] }).request])
    case 'contentgen-compat':
      return chatFacts([parseContentgen(body)])
    default:
      return undefined
  }
}
