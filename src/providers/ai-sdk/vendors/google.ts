/** Google's Gemini API, by a key: Veo and other models of `predictLongRunning`, images and embeddings. */
import { isRecord } from '../../../kit/json.ts'
import type { EmbeddingFamily } from '../text-families.ts'
import { vendor } from '../vendor-row.ts'
import type { VideoFamily } from '../video/video-family.ts'
import { GEMINI_IMAGES } from './gemini-images.ts'
import { classifyVeoError, readVeo, veoOptions } from './veo.ts'

const VIDEO: VideoFamily = {
  acceptedResponse: { name: 'models/model/operations/id' },
  media: 'bytes',
  drops: ['video'],
  // The model decides whether there is sound: there is no field for it.
  adaptOptions: (options, order, model) => ({ ...veoOptions(options, order, model), generateAudio: undefined }),
  classifyError: classifyVeoError,
  // The package would put the key into the URL of each file.
  read: (payload) =>
    readVeo(payload, (response) => {
      const samples = isRecord(response.generateVideoResponse)
        ? response.generateVideoResponse.generatedSamples
        : undefined
      return (Array.isArray(samples) ? samples : []).flatMap((sample) =>
        isRecord(sample) && isRecord(sample.video) && typeof sample.video.uri === 'string'
          ? [{ url: withoutKey(sample.video.uri), content_type: 'video/mp4' }]
          : [],
      )
    }),
  outputHeaders: (key, isOwn): Record<string, string> => (isOwn ? { 'x-goog-api-key': key } : {}),
}

export const GOOGLE_EMBEDDINGS: Pick<EmbeddingFamily, 'options'> = {
  options: () => ({
    dimensions: 'outputDimensionality',
    input_type: { option: 'taskType', values: { query: 'RETRIEVAL_QUERY', document: 'RETRIEVAL_DOCUMENT' } },
  }),
}

export const GOOGLE = vendor({
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  load: async ({ key, fetch, baseUrl }) =>
    (await import('@ai-sdk/google')).createGoogle({ apiKey: key, baseURL: baseUrl, fetch }),
  embeddings: { factory: (sdk) => sdk.embedding, maxInputs: () => 100, ...GOOGLE_EMBEDDINGS },
  images: { factory: (sdk) => sdk.image, ...GEMINI_IMAGES },
  speech: { factory: (sdk) => sdk.speech, formats: { wav: 'wav', pcm: 'pcm' }, has_instructions: true },
  video: { factory: (sdk) => sdk.video, ...VIDEO },
})

/** The key is sent as a header, so the URL needs none; a client may be given the URL. */
function withoutKey(uri: string): string {
  const url = URL.parse(uri)
  if (!url?.searchParams.has('key')) return uri
  url.searchParams.delete('key')
  return url.href
}
