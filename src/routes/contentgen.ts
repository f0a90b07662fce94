/** The contentgen dialect over HTTP: its methods by name, each below every path that clients write. */

import type { CountParts } from '../chat/count-tokens.ts'
import { contentgenCountRoute } from '../chat/count-tokens-contentgen.ts'
import { type ContentgenMethod, contentgenDialect } from '../chat/dialects/contentgen.ts'
import type { Route } from '../http/context.ts'
import { chatRoute } from './chat.ts'
import type { MethodRoute } from './model-methods.ts'
import { modelMethodRoutes } from './model-methods.ts'

type RouteParts = Omit<Parameters<typeof chatRoute>[0], 'dialect'> & CountParts

export function contentgenRoutes(parts: RouteParts): Route[] {
  const chats = (method: ContentgenMethod): MethodRoute => chatRoute({ ...parts, dialect: contentgenDialect(method) })
  return modelMethodRoutes({
    generateContent: chats('generateContent'),
    streamGenerateContent: chats('streamGenerateContent'),
    countTokens: contentgenCountRoute(parts),
  })
}
