/** Fields of the gateway that the shared models for chat and images would leave out with a warning. */
import type { ImageModelV4, JSONObject, LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import { ownFields } from './http.ts'
import { PROVIDER } from './settings.ts'

/** Values in `providerOptions.gatehouse` take precedence. */
const withFields = (
  options: SharedV4ProviderOptions | undefined,
  fields: JSONObject,
  own: JSONObject = options?.[PROVIDER] ?? {},
): SharedV4ProviderOptions => ({ ...options, [PROVIDER]: { ...fields, ...own } })

export function withTopK(model: LanguageModelV4): LanguageModelV4 {
  const withField = (options: Parameters<LanguageModelV4['doGenerate']>[0]) => {
    const { topK, ...rest } = options
    return topK === undefined
      ? options
      : { ...rest, providerOptions: withFields(rest.providerOptions, { top_k: topK }) }
  }
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (options) => model.doGenerate(withField(options)),
    doStream: (options) => model.doStream(withField(options)),
  }
}

/** The ratio and the seed; the shared model supports neither. */
export function withImageFields(
  model: Pick<ImageModelV4, 'provider' | 'modelId' | 'maxImagesPerCall' | 'doGenerate'>,
): ImageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    maxImagesPerCall: model.maxImagesPerCall,
    doGenerate({ aspectRatio, seed, providerOptions, ...options }) {
      const fields: JSONObject = {}
      if (aspectRatio !== undefined) fields.aspect_ratio = aspectRatio
      if (seed !== undefined) fields.seed = seed
      return model.doGenerate({
        ...options,
        aspectRatio: undefined,
        seed: undefined,
        providerOptions: withFields(providerOptions, fields, ownFields(providerOptions)),
      })
    },
  }
}
