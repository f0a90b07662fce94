/** Speech and transcription for the AI SDK. */
import type { SpeechModelV4, TranscriptionModelV4 } from '@ai-sdk/provider'
import {
  convertBase64ToUint8Array,
  createBinaryResponseHandler,
  createJsonResponseHandler,
  mediaTypeToExtension,
  postFormDataToApi,
  postJsonToApi,
} from '@ai-sdk/provider-utils'
import { z } from 'zod/v4'
import { callTo, ownFields, responseOf } from './http.ts'
import { type ModelParts, PROVIDER } from './settings.ts'

/** The gateway requires a voice; that of OpenAI's own examples. */
const DEFAULT_VOICE = 'alloy'

export function createSpeechModel({ connection, modelId }: ModelParts): SpeechModelV4 {
  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.speech`,
    modelId,
    async doGenerate(options) {
      const { text, voice = DEFAULT_VOICE, outputFormat, instructions, speed, language, providerOptions } = options
      const own = ownFields(providerOptions)
      const { value, responseHeaders } = await postJsonToApi({
        ...(await callTo(connection, '/audio/speech', options)),
        body: { input: text, voice, response_format: outputFormat, instructions, speed, ...own, model: modelId },
        successfulResponseHandler: createBinaryResponseHandler(),
      })
      const details = 'The language is that of the text.'
      return {
        audio: value,
        warnings: language === undefined ? [] : [{ type: 'unsupported', feature: 'language', details }],
        response: responseOf(modelId, responseHeaders),
      }
    },
  }
}

const Transcript = z.object({
  text: z.string(),
  language: z.string().nullish(),
  duration: z.number().nullish(),
  segments: z.array(z.object({ text: z.string(), start: z.number(), end: z.number() })).nullish(),
})

export function createTranscriptionModel({ connection, modelId }: ModelParts): TranscriptionModelV4 {
  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.transcription`,
    modelId,
    async doGenerate(options) {
      const { audio, mediaType, timestampGranularities: times, providerOptions } = options
      const fields = {
        // Not every model has times, so they are asked for only where they are wanted.
        ...(times?.length ? { response_format: 'verbose_json', timestamp_granularities: times } : {}),
        ...ownFields(providerOptions),
        model: modelId,
      }
      const formData = new FormData()
      for (const [name, value] of Object.entries(fields)) {
        for (const one of Array.isArray(value) ? value : [value]) {
          formData.append(Array.isArray(value) ? `${name}[]` : name, String(one))
        }
      }
      const bytes = typeof audio === 'string' ? convertBase64ToUint8Array(audio) : new Uint8Array(audio)
      formData.append('file', new File([bytes], `audio.${mediaTypeToExtension(mediaType)}`, { type: mediaType }))
      const { value, responseHeaders } = await postFormDataToApi({
        ...(await callTo(connection, '/audio/transcriptions', options)),
        formData,
        successfulResponseHandler: createJsonResponseHandler(Transcript),
      })
      return {
        text: value.text,
        segments: (value.segments ?? []).map(({ text, start, end }) => ({ text, startSecond: start, endSecond: end })),
        language: value.language ?? undefined,
        durationInSeconds: value.duration ?? undefined,
        warnings: [],
        response: responseOf(modelId, responseHeaders),
      }
    },
  }
}
