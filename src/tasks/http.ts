/** Videos over HTTP: in the specification's words, and in the chat-compatible style. */
import type { Route } from '../http/context.ts'
import { contentRoute } from './content-http.ts'
import { generationRoutes } from './generations-http.ts'
import type { FaceParts } from './video-face.ts'
import { videosRoutes } from './videos-http.ts'

export const videoRoutes = (parts: FaceParts): Route[] => [
  ...generationRoutes(parts),
  ...videosRoutes(parts),
  contentRoute(parts),
]
