/** Stores a client's feedback on a response with its row of the request log. */
import Type from 'typebox'
import { BODY_ERRORS, type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { GatewayError } from '../../spec/error.ts'
import { closedObject, number, orNull, text, titled } from '../../spec/fields.ts'
import type { RequestReader } from './request-reader.ts'

const MAX_SCORE = 100
const MAX_TEXT = 4_096

const FeedbackOrder = closedObject('FeedbackOrder', {
  request_id: Type.String({
    pattern: '^[\\w.:-]{1,128}$',
    description: 'The `x-request-id` of the response.',
  }),
  score: number({ minimum: -MAX_SCORE, maximum: MAX_SCORE }, 'A grade on a scale of your own, such as 0 and 1.'),
  text: text({ minLength: 1, maxLength: MAX_TEXT }, 'A comment.'),
})

const Feedback = titled('Feedback', {
  object: Type.Literal('feedback'),
  request_id: Type.String(),
  score: orNull(Type.Number()),
  text: orNull(Type.String()),
  created_at: Type.Integer({ description: 'Unix seconds.' }),
})

export type FeedbackRouteParts = BodyParts & { requests: RequestReader }

export function feedbackRoutes({ requests, ...parts }: FeedbackRouteParts): Route[] {
  const read = bodyReader(FeedbackOrder, parts)

  async function rate(context: Context): Promise<Response> {
    const { request_id, score = null, text: given = null } = await read(context)
    if (score === null && given === null) {
      throw new GatewayError('missing_required_parameter', 'Send "score", "text" or both.', { param: 'score' })
    }
    const text = given === null ? null : given.replaceAll('\0', '').toWellFormed()
    const rated = await requests.rate(context.caller, { request_id, score, text })
    if (!rated) {
      throw new GatewayError(
        'object_not_found',
        `The request log has no request ${JSON.stringify(request_id)} of this token or its project.`,
        { param: 'request_id' },
      )
    }
    return Response.json({ object: 'feedback', request_id, score, text, ...rated })
  }

  return [
    {
      method: 'POST',
      path: '/v1/feedback',
      operation: {
        summary: 'Rate a response',
        description:
          'Joins a score, a comment or both to a request in the request log, which the operator sees. Only the token that has made the request, and other tokens of its project, can rate it; later feedback replaces earlier.',
        tag: 'Gateway',
        request: FeedbackOrder,
        response: Feedback,
        errors: [...BODY_ERRORS, 'object_not_found', 'storage_unavailable'],
        example: { request_id: 'req_0123456789abcdefghijABCD', score: 1, text: 'Correct and short.' },
      },
      handle: rate,
    },
  ]
}
