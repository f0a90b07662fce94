/** Google's developer API, by a key: Veo, and what else answers to `predictLongRunning` there. */
import { isRecord } from '../../kit/json.ts'
import type { AiSdkVendor } from './vendor.ts'
import { judgeVeo, readVeo, writeVeo } from './veo.ts'

const HOME = 'https://generativelanguage.googleapis.com/v1beta'

export const GOOGLE: AiSdkVendor = {
  kind: 'google',
  home: HOME,
  key_env: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  namespace: 'google',
  async load({ key, fetch }) {
    const { createGoogle } = await import('@ai-sdk/google')
    return createGoogle({ apiKey: key, baseURL: HOME, fetch }).video
  },
  accepted: { name: 'models/model/operations/id' },
  media: 'bytes',
  drops: ['video'],
  // Whether there is sound is the model's matter here: there is no field for it.
  write: (wanted, order, model) => ({ ...writeVeo(wanted, order, model), generateAudio: undefined }),
  judge: judgeVeo,
  // The package would put the key into the address of each file.
  read: (payload) =>
    readVeo(payload, (response) => {
      const made = isRecord(response.generateVideoResponse)
        ? response.generateVideoResponse.generatedSamples
        : undefined
      return (Array.isArray(made) ? made : []).flatMap((sample) =>
        isRecord(sample) && isRecord(sample.video) && typeof sample.video.uri === 'string'
          ? [{ url: withoutKey(sample.video.uri), content_type: 'video/mp4' }]
          : [],
      )
    }),
  outputHeaders: (key, isOwn): Record<string, string> => (isOwn ? { 'x-goog-api-key': key } : {}),
}

/** The key is sent as a header, so an address needs none; a client may be given the address. */
function withoutKey(uri: string): string {
  const url = URL.parse(uri)
  if (!url?.searchParams.has('key')) return uri
  url.searchParams.delete('key')
  return url.href
}
