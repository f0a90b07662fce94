/** The contentgen dialect over HTTP: its methods by name, each below every path that clients write. */

import type { Route } from '../http/context.ts'
import type { MethodRoute } from '../http/model-methods.ts'
import { modelMethodRoutes } from '../http/model-methods.ts'
import type { CountParts } from './count-tokens.ts'
import { contentgenCountRoute } from './count-tokens-contentgen.ts'
import { type ContentgenMethod, contentgenDialect } from './dialects/contentgen.ts'
import { chatRoute } from './http.ts'

type RouteParts = Omit<Parameters<typeof chatRoute>[0], 'dialect'> & CountParts

export function contentgenRoutes(parts: RouteParts): Route[] {
  const chats = (method: ContentgenMethod): MethodRoute => chatRoute({ ...parts, dialect: contentgenDialect(method) })
  return modelMethodRoutes({
    generateContent: chats('generateContent'),
    streamGenerateContent: chats('streamGenerateContent'),
    countTokens: contentgenCountRoute(parts),
  })
}
