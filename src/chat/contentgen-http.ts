/** The contentgen dialect over HTTP: its methods by name, each below every path that clients write. */

import type { Context, Route } from '../http/context.ts'
import type { MethodRoute } from '../http/model-methods.ts'
import { modelMethodRoutes } from '../http/model-methods.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { Chat } from './chat.ts'
import type { CountParts } from './count-tokens.ts'
import { contentgenCountRoute } from './count-tokens-contentgen.ts'
import { type ContentgenMethod, contentgenDialect, isSse } from './dialects/contentgen.ts'
import { blockedAnswer } from './dialects/contentgen-writer.ts'
import { chatRoute } from './http.ts'

type RouteParts = Omit<Parameters<typeof chatRoute>[0], 'dialect'> & CountParts & { chat: Chat }

export function contentgenRoutes(parts: RouteParts): Route[] {
  const chats = (method: ContentgenMethod): MethodRoute =>
    answeringBlocks(chatRoute({ ...parts, dialect: contentgenDialect(method) }), method)
  return modelMethodRoutes({
    generateContent: chats('generateContent'),
    streamGenerateContent: chats('streamGenerateContent'),
    countTokens: contentgenCountRoute(parts),
  })
}

/** A prompt that the vendor refused before its first word is an answer of this dialect, and no error. */
function answeringBlocks(route: Route, method: ContentgenMethod): MethodRoute {
  return {
    ...route,
    async handle(context) {
      try {
        return await route.handle(context)
      } catch (thrown) {
        if (!(thrown instanceof GatewayError) || thrown.code !== 'content_policy_violation') throw thrown
        return blocked(thrown, method, context)
      }
    },
  }
}

function blocked(error: GatewayError, method: ContentgenMethod, { note, request }: Context): Response {
  note.error = error.code
  note.stream = false
  if (error.detail.upstream_status !== undefined) note.upstream_status = error.detail.upstream_status
  const body = blockedAnswer(error, { id: randomAlphanumerics(24), model: note.model ?? '' })
  if (method === 'generateContent') return Response.json(body)
  if (!isSse(request)) return Response.json([body])
  const headers = { 'content-type': 'text/event-stream; charset=utf-8' }
  return new Response(`data: ${JSON.stringify(body)}\n\n`, { headers })
}
