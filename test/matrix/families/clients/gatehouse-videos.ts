/** Videos with the `ai` package and our own provider for it. */
import {
  experimental_generateVideo as generateVideo,
  experimental_getVideoStatus as getVideoStatus,
  experimental_startVideo as startVideo,
} from 'ai'
import { createGatehouse, errorCodeOf } from '../../../../packages/ai-sdk/src/gatehouse.ts'
import { aiFault } from '../../clients/ai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { VideoOrder, VideosClient } from '../types.ts'

/** The polling interval. The gateway holds each poll until the status changes. */
const TASKS = { pollIntervalMs: 20, statusWaitSeconds: 10 }

export const gatehouseOf = ({ origin, token }: Gateway) =>
  createGatehouse({ baseURL: `${origin}/v1`, apiKey: token, tasks: TASKS })

function clientOf(gateway: Gateway): VideosClient {
  const paramsOf = ({ model, prompt, seconds }: VideoOrder) => ({
    model: gatehouseOf(gateway).video(model),
    prompt,
    maxRetries: 0,
    ...(seconds ? { duration: seconds } : {}),
  })
  return {
    async film(params) {
      const { video } = await generateVideo(paramsOf(params))
      return { bytes: video.uint8Array, media_type: video.mediaType }
    },
    failure: (params) =>
      generateVideo(paramsOf(params)).then(
        () => undefined,
        (error: unknown) => errorCodeOf(error),
      ),
    async later(params) {
      const { operation } = await startVideo(paramsOf(params))
      const elsewhere = gatehouseOf(gateway).video(params.model)
      const stored = JSON.parse(JSON.stringify(operation))
      for (;;) {
        const reply = await getVideoStatus(elsewhere, { operation: stored })
        if (reply.status === 'error') throw new Error(reply.error)
        if (reply.status === 'pending') continue
        const [video] = reply.videos
        if (video?.type !== 'binary') throw new Error(`The type is ${video?.type}.`)
        return { bytes: video.data, media_type: video.mediaType }
      }
    },
    fault: aiFault,
  }
}

export const gatehouseVideos: FamilyRow<VideosClient> = {
  name: '`ai` 7, `@gatehouse/ai-sdk`, videos',
  packages: ['ai', '@gatehouse/ai-sdk'],
  base: '/v1',
  dialect: 'video-generation',
  connect: clientOf,
}
