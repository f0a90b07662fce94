/** Amazon Bedrock: Nova Canvas, and what else speaks its words. */
import { isRecord } from '../../../kit/json.ts'
import type { Provider } from '../../provider.ts'
import { rowOf } from '../chat/amazon-bedrock.ts'
import type { AiSdkParts } from '../vendor.ts'
import { AGAINST_POLICY, wordsOf } from '../words.ts'
import { aiSdkImages } from './ai-sdk-images.ts'
import type { SaidOfImages } from './vendor.ts'

/** Throws an Error that names the provider and says what would be right. */
export function amazonBedrockImages(parts: AiSdkParts): Required<Pick<Provider, 'images'>> {
  const { vendor, key, open } = rowOf(parts)
  const { home, key_env } = vendor
  return aiSdkImages(
    { ...parts, config: { ...parts.config, ...(key ? { key } : {}) } },
    {
      kind: 'amazon-bedrock',
      home,
      key_env,
      needsNoKey: true,
      namespace: 'amazonBedrock',
      load: async (at) => (await open(at, home)).image,
      operations: ['generate', 'edit', 'variation'],
      shape: () => ({ by: 'size' }),
      edits: () => ({ most: 5, mask: 'black' }),
      media: 'bytes',
      options: { negative_prompt: 'negativeText', quality: 'quality', style: 'style' },
      hasSeed: true,
      // Its words for quality are two.
      write: ({ quality }) => (quality === undefined ? {} : { quality: QUALITIES[quality] ?? quality }),
      judge: (payload, status) => (status === 400 && AGAINST_POLICY.test(wordsOf(payload)) ? 'policy' : undefined),
      read: readNova,
    },
  )
}

const QUALITIES: Record<string, string> = {
  low: 'standard',
  medium: 'standard',
  auto: 'standard',
  high: 'premium',
  hd: 'premium',
}

/** Its filter takes images away one by one, and says so beside what is left. */
function readNova(payload: unknown): SaidOfImages | undefined {
  if (!isRecord(payload)) return undefined
  const images = Array.isArray(payload.images) ? payload.images : []
  const made = images.flatMap((one) => (typeof one === 'string' && one !== '' ? [{ base64: one }] : []))
  if (made.length > 0) return { images: made }
  const reason = typeof payload.error === 'string' ? payload.error : ''
  if (reason === '') return Array.isArray(payload.images) ? { images: [] } : undefined
  return /block|polic|moderat|responsible/i.test(reason)
    ? { failure: { fail_code: 'content_policy_violation', reason } }
    : { failure: { reason } }
}
