/** Google's two doors to its image models: they answer as chat models do, with images among the parts. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { ImageUsage } from '../../../spec/image-request.ts'
import type { Provider } from '../../provider.ts'
import { googleVertexChat } from '../chat/google-vertex.ts'
import { GOOGLE } from '../google.ts'
import type { AiSdkParts } from '../vendor.ts'
import { judgeVeo } from '../veo.ts'
import { aiSdkImages } from './ai-sdk-images.ts'
import type { ImageVendor, SaidOfImages, Shape } from './vendor.ts'

const SHAPE: Shape = {
  by: 'ratio',
  among: ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9', '1:8', '8:1', '1:4', '4:1'],
}

const COMMON: Pick<ImageVendor, 'only' | 'shape' | 'edits' | 'media' | 'hasSeed' | 'judge' | 'read'> = {
  only: { models: /^gemini-/, named: 'begin with "gemini-"' },
  shape: () => SHAPE,
  edits: () => ({ most: 14 }),
  media: 'bytes',
  hasSeed: true,
  judge: judgeVeo,
  read: readGemini,
}

export const GOOGLE_IMAGES: ImageVendor = {
  kind: 'google',
  home: GOOGLE.home,
  key_env: GOOGLE.key_env,
  namespace: 'google',
  async load({ key, fetch }) {
    const { createGoogle } = await import('@ai-sdk/google')
    return createGoogle({ apiKey: key, baseURL: GOOGLE.home, fetch }).image
  },
  ...COMMON,
}

/** Throws an Error that names the provider and says what would be right. */
export function googleVertexImages(parts: AiSdkParts): Required<Pick<Provider, 'images'>> {
  const { home, key_env, authorize, send } = googleVertexChat(parts)
  return aiSdkImages(parts, {
    kind: 'google-vertex',
    home,
    key_env,
    needsNoKey: true,
    ...(authorize ? { authorize } : {}),
    ...(send ? { send } : {}),
    namespace: 'googleVertex',
    async load({ key, fetch }) {
      const { createGoogleVertex } = await import('@ai-sdk/google-vertex')
      return createGoogleVertex({ apiKey: key, baseURL: home, fetch }).image
    },
    ...COMMON,
  })
}

/** Why an answer holds no image: these are about what was asked for, or about what came of it. */
const REFUSED = /SAFETY|PROHIBITED|RECITATION|BLOCKLIST|SPII|PROMINENT|BLOCKED/

function readGemini(payload: unknown): SaidOfImages | undefined {
  if (!isRecord(payload) || payload.error !== undefined) return undefined
  const candidates = Array.isArray(payload.candidates) ? payload.candidates.filter(isRecord) : []
  const parts = candidates.flatMap(({ content }) =>
    isRecord(content) && Array.isArray(content.parts) ? content.parts : [],
  )
  const made = parts.filter(isRecord).flatMap((part) => {
    const { inlineData: data } = part
    // What it drew while it was thinking is not what it gives.
    if (part.thought === true || !isRecord(data) || typeof data.data !== 'string') return []
    return [{ base64: data.data }]
  })
  const usage = usageIn(payload.usageMetadata)
  if (made.length > 0) return { images: made, ...(usage ? { usage } : {}) }
  const feedback = isRecord(payload.promptFeedback) ? payload.promptFeedback : {}
  const [first = {}] = candidates
  const reason = [feedback.blockReason, first.finishReason].find((one) => typeof one === 'string' && one !== 'STOP')
  if (reason === undefined) return candidates.length > 0 ? { images: [] } : undefined
  const told = [feedback.blockReasonMessage, first.finishMessage].find((one) => typeof one === 'string') ?? reason
  return REFUSED.test(String(reason))
    ? { failure: { fail_code: 'content_policy_violation', reason: String(told) } }
    : { failure: { reason: String(told) } }
}

function usageIn(usage: unknown): ImageUsage | undefined {
  if (!isRecord(usage)) return undefined
  const count = (value: unknown) => (typeof value === 'number' && value > 0 ? value : 0)
  const input_tokens = count(usage.promptTokenCount)
  const output_tokens = count(usage.candidatesTokenCount) + count(usage.thoughtsTokenCount)
  if (input_tokens + output_tokens === 0) return undefined
  const details = Array.isArray(usage.promptTokensDetails) ? usage.promptTokensDetails.filter(isRecord) : []
  const of = (modality: string) =>
    details.filter((one: JsonRecord) => one.modality === modality).reduce((all, one) => all + count(one.tokenCount), 0)
  return {
    input_tokens,
    output_tokens,
    total_tokens: Math.max(count(usage.totalTokenCount), input_tokens + output_tokens),
    ...(details.length > 0 ? { input_tokens_details: { text_tokens: of('TEXT'), image_tokens: of('IMAGE') } } : {}),
  }
}
