/** The admin API's explanation of how a request would be routed now, with what this process remembers. */
import Type from 'typebox'
import type { Tokens } from '../../accounts/tokens.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Route } from '../../http/context.ts'
import { ENDPOINT_FAMILIES } from '../../spec/endpoint-family.ts'
import { closedObject, flag, list, oneOf, text, titled } from '../../spec/fields.ts'
import { EXPLANATION, type Explained, type ExplainRequest } from '../explain-request.ts'
import { noSuch } from './edit.ts'
import { adminRoute } from './route.ts'

type ExplainRouteParts = BodyParts & {
  /** Throws GatewayError as the request would. */
  explain(request: ExplainRequest): Explained
  tokens: Pick<Tokens, 'callerOf'>
}

const ExplainOrder = closedObject('RoutingExplanationOrder', {
  model: Type.String({ minLength: 1, description: 'As a client would name it.' }),
  family: oneOf(ENDPOINT_FAMILIES, 'The kind of request. Default: the first of the model.'),
  stream: flag('Default false.'),
  body: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'The request as a client would send it: its size, tools and images count for conditions.',
    }),
  ),
  tags: list(Type.String(), { maxItems: 16 }, 'As in the header x-gatehouse-tags.'),
  token_id: text({ minLength: 1 }, 'As a request of this token. Default: of one without limits.'),
})

const Explanation = titled('RoutingExplanation', EXPLANATION)

export function adminExplainRoutes({ explain, tokens, ...parts }: ExplainRouteParts): Route[] {
  const read = bodyReader(ExplainOrder, parts)
  return [
    adminRoute(['POST', '/admin/v1/routing/explain', 'read'], {
      summary: 'Explain how a request would be routed',
      description:
        'Nothing is sent and nothing is counted. Fails as the request would, where it could not be routed at all.',
      request: ExplainOrder,
      response: Explanation,
      errors: [
        'object_not_found',
        'model_not_found',
        'model_not_allowed',
        'content_blocked',
        'ambiguous_model',
        'model_retired',
        'unsupported_endpoint',
      ],
      example: { model: 'sandbox/general' },
      async handle(context) {
        const { model, family, stream = false, body, tags, token_id } = await read(context)
        const caller = token_id === undefined ? undefined : await tokens.callerOf(token_id)
        if (token_id !== undefined && !caller) throw noSuch('token', token_id)
        return Response.json(explain({ model, family, is_stream: stream, body, tags, caller }))
      },
    }),
  ]
}
