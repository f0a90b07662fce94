/** Images by Google's two APIs: Gemini models return them among the parts of a chat response. */
import { asRecord, isRecord, type JsonRecord, recordsIn } from '../../../kit/json.ts'
import type { ImageUsage } from '../../../spec/image-request.ts'
import type { ImageFamily, ImageResult, Shape } from '../images/image-family.ts'
import { filtered } from './response-values.ts'
import { classifyVeoError } from './veo.ts'

const SHAPE: Shape = {
  by: 'ratio',
  among: ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9', '1:8', '8:1', '1:4', '4:1'],
}

export const GEMINI_IMAGES: ImageFamily = {
  only: { models: /^gemini-/, named: 'begin with "gemini-"' },
  shape: () => SHAPE,
  edits: () => ({ max: 14 }),
  media: 'bytes',
  hasSeed: true,
  classifyError: classifyVeoError,
  read: readGemini,
}

/** Reasons for a response without images: the prompt or the result was refused. */
const REFUSED = /SAFETY|PROHIBITED|RECITATION|BLOCKLIST|SPII|PROMINENT|BLOCKED/

function readGemini(payload: unknown): ImageResult | undefined {
  if (!isRecord(payload) || payload.error !== undefined) return undefined
  const candidates = recordsIn(payload.candidates)
  const parts = candidates.flatMap(({ content }) =>
    isRecord(content) && Array.isArray(content.parts) ? content.parts : [],
  )
  const images = parts.filter(isRecord).flatMap((part) => {
    const { inlineData: data } = part
    // Images of its reasoning are not the result.
    if (part.thought === true || !isRecord(data) || typeof data.data !== 'string') return []
    return [{ base64: data.data }]
  })
  const usage = usageIn(payload.usageMetadata)
  if (images.length > 0) return { images, ...(usage ? { usage } : {}) }
  const feedback = asRecord(payload.promptFeedback)
  const [first = {}] = candidates
  const reason = [feedback.blockReason, first.finishReason].find((one) => typeof one === 'string' && one !== 'STOP')
  if (reason === undefined) return candidates.length > 0 ? { images: [] } : undefined
  const message = [feedback.blockReasonMessage, first.finishMessage].find((one) => typeof one === 'string') ?? reason
  return REFUSED.test(String(reason)) ? filtered(String(message)) : { failure: { reason: String(message) } }
}

function usageIn(usage: unknown): ImageUsage | undefined {
  if (!isRecord(usage)) return undefined
  const count = (value: unknown) => (typeof value === 'number' && value > 0 ? value : 0)
  const input_tokens = count(usage.promptTokenCount)
  const output_tokens = count(usage.candidatesTokenCount) + count(usage.thoughtsTokenCount)
  if (input_tokens + output_tokens === 0) return undefined
  const details = recordsIn(usage.promptTokensDetails)
  const of = (modality: string) =>
    details.filter((one: JsonRecord) => one.modality === modality).reduce((all, one) => all + count(one.tokenCount), 0)
  return {
    input_tokens,
    output_tokens,
    total_tokens: Math.max(count(usage.totalTokenCount), input_tokens + output_tokens),
    ...(details.length > 0 ? { input_tokens_details: { text_tokens: of('TEXT'), image_tokens: of('IMAGE') } } : {}),
  }
}
