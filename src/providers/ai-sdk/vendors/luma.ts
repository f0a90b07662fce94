/** Luma: images by its package; its videos have an adapter of their own. */
import { isRecord } from '../../../kit/json.ts'
import { createLuma } from '../../video/luma.ts'
import type { ImageFamily } from '../images/image-family.ts'
import { vendor } from '../vendor-row.ts'
import { imagesIn, messageIn, POLL_ATTEMPTS } from './response-values.ts'

const IMAGES: ImageFamily = {
  shape: () => ({ by: 'ratio', among: ['1:1', '3:4', '4:3', '9:16', '16:9', '9:21', '21:9'] }),
  edits: () => ({ max: 4 }),
  media: 'url',
  pendingResponse: (receipt) => receipt,
  options: { output_format: 'format' },
  moreOptions: ({ images = [], output_format }) => ({
    maxPollAttempts: POLL_ATTEMPTS,
    ...(images.length === 1 ? { referenceType: 'modify_image' } : {}),
    ...(output_format === 'jpeg' ? { format: 'jpg' } : {}),
  }),
  classifyError: (payload, status) =>
    status === 400 && /moderation|not allowed|polic/i.test(messageIn(payload)) ? 'policy' : undefined,
  read(payload) {
    if (!isRecord(payload)) return undefined
    if (payload.state === 'failed') return { failure: { reason: String(payload.failure_reason ?? '') } }
    if (payload.state !== 'completed') return undefined
    return { images: isRecord(payload.assets) ? imagesIn([payload.assets.image]) : [] }
  },
}

export const LUMA = vendor({
  baseUrl: 'https://api.lumalabs.ai/dream-machine/v1',
  load: async ({ key, fetch }) => (await import('@ai-sdk/luma')).createLuma({ apiKey: key, fetch }),
  images: { factory: (sdk) => sdk.image, ...IMAGES },
  others: createLuma,
})
