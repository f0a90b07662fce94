/** All task routes: videos in the specification's API and in the chat-compatible one, images and 3D models. */
import type { Route } from '../../../http/context.ts'
import { contentRoute } from './content.ts'
import { videoGenerationRoutes } from './generations.ts'
import { imageTaskRoutes } from './image-tasks.ts'
import { operationRoutes } from './operations.ts'
import type { TaskApiParts } from './task-api.ts'
import { threeDRoutes } from './three-d.ts'
import { VIDEOS, videosRoutes } from './videos.ts'

export const taskRoutes = (parts: TaskApiParts): Route[] => [
  ...videoGenerationRoutes(parts),
  ...videosRoutes(parts),
  contentRoute(parts, { ...VIDEOS, variants: ['video'], media: ['video/mp4'] }),
  ...operationRoutes(parts),
  ...threeDRoutes(parts),
  ...imageTaskRoutes(parts),
]
