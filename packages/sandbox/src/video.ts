/** Videos of the sandbox. */
import Type from 'typebox'
import type { VideoProvider } from '../../../src/providers/provider.ts'
import type { VideoOrder } from '../../../src/spec/video-request.ts'
import { isQuick, STORED_ORDER } from './order-directives.ts'
import { createSandboxOrders, oneOf, reject, type SandboxOrdersParts } from './orders.ts'
import { ASPECT_RATIOS, DURATIONS, planRender, SIZES } from './render/plan.ts'

const VideoOperation = Type.Object({
  ...STORED_ORDER,
  aspect_ratio: Type.Enum([...ASPECT_RATIOS]),
  size: Type.Enum([...SIZES]),
  duration: Type.Enum([...DURATIONS]),
  audio: Type.Boolean(),
})

const NAME = 'video.mp4'

export const createSandboxVideo = (parts: SandboxOrdersParts): VideoProvider & { close(): Promise<void> } =>
  createSandboxOrders<VideoOrder, Type.Static<typeof VideoOperation>>(parts, {
    thing: 'video',
    prefix: 'vid',
    schema: VideoOperation,
    max_text: 1500,
    unsupported: ['image', 'last_image', 'images', 'video', 'negative_prompt'],
    parse({ request: { n, aspect_ratio = '16:9', size = '720p', duration = 4, audio_enable = false } }) {
      if (n > 1) reject('n', 'the sandbox makes one video at a time: n must be 1')
      return {
        aspect_ratio: oneOf(ASPECT_RATIOS, aspect_ratio, 'aspect_ratio'),
        size: oneOf(SIZES, size, 'size'),
        duration: oneOf(DURATIONS, duration, 'duration'),
        audio: audio_enable,
      }
    },
    workOf(operation) {
      const plan = planRender({ ...operation, quick: isQuick(operation) })
      return { plan, steps: plan.frames, name: NAME }
    },
    filesOf: () => [{ name: NAME, content_type: 'video/mp4' }],
  })
