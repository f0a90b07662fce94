/** The provider, and all exports of the package. */
import {
  OpenAICompatibleChatLanguageModel,
  OpenAICompatibleEmbeddingModel,
  OpenAICompatibleImageModel,
} from '@ai-sdk/openai-compatible'
import type {
  EmbeddingModelV4,
  ImageModelV4,
  LanguageModelV4,
  ProviderV4,
  RerankingModelV4,
  SpeechModelV4,
  TranscriptionModelV4,
} from '@ai-sdk/provider'
import { assertAiVersion } from './ai-version.ts'
import { createSpeechModel, createTranscriptionModel } from './audio.ts'
import { ERROR_STRUCTURE } from './errors.ts'
import { withImageFields, withTopK } from './own-fields.ts'
import { createRerankingModel } from './reranking-model.ts'
import { connect, type GatehouseSettings, PROVIDER, rulesOf, type TaskSettings } from './settings.ts'
import { createThreeDModel, type ThreeDModel } from './three-d.ts'
import { createVideoModel, type VideoModel } from './video-model.ts'

export interface GatehouseProvider extends ProviderV4 {
  /** A chat model: the same as `languageModel`. */
  (modelId: string): LanguageModelV4
  chat(modelId: string): LanguageModelV4
  embedding(modelId: string): EmbeddingModelV4
  image(modelId: string): ImageModelV4
  reranking(modelId: string): RerankingModelV4
  rerankingModel(modelId: string): RerankingModelV4
  speech(modelId: string): SpeechModelV4
  speechModel(modelId: string): SpeechModelV4
  transcription(modelId: string): TranscriptionModelV4
  transcriptionModel(modelId: string): TranscriptionModelV4
  video(modelId: string, settings?: TaskSettings): VideoModel
  videoModel(modelId: string, settings?: TaskSettings): VideoModel
  threeD(modelId: string, settings?: TaskSettings): ThreeDModel
}

/** A provider for one gateway. Models have the names that the gateway lists: `sandbox/general`. */
export function createGatehouse(settings: GatehouseSettings = {}): GatehouseProvider {
  assertAiVersion()
  const connection = connect(settings)
  rulesOf(settings.tasks) // invalid settings throw here, where they are given
  const shared = (family: string) => ({
    provider: `${PROVIDER}.${family}`,
    url: ({ path }: { path: string }) => connection.url(path),
    headers: connection.headers,
    fetch: connection.fetch,
    errorStructure: ERROR_STRUCTURE,
  })
  const chat = (modelId: string) =>
    withTopK(
      new OpenAICompatibleChatLanguageModel(modelId, {
        ...shared('chat'),
        includeUsage: true,
        supportsStructuredOutputs: true,
      }),
    )
  const embedding = (modelId: string) => new OpenAICompatibleEmbeddingModel(modelId, shared('embedding'))
  const image = (modelId: string) => withImageFields(new OpenAICompatibleImageModel(modelId, shared('image')))
  const reranking = (modelId: string) => createRerankingModel({ connection, modelId })
  const speech = (modelId: string) => createSpeechModel({ connection, modelId })
  const transcription = (modelId: string) => createTranscriptionModel({ connection, modelId })
  const video = (modelId: string, own?: TaskSettings) =>
    createVideoModel({ connection, modelId, rules: rulesOf(settings.tasks, own) })
  const threeD = (modelId: string, own?: TaskSettings) => {
    rulesOf(settings.tasks, own)
    return createThreeDModel({ connection, modelId, settings: [settings.tasks, own] })
  }
  return Object.assign((modelId: string) => chat(modelId), {
    specificationVersion: 'v4' as const,
    languageModel: chat,
    chat,
    embeddingModel: embedding,
    embedding,
    imageModel: image,
    image,
    rerankingModel: reranking,
    reranking,
    speechModel: speech,
    speech,
    transcriptionModel: transcription,
    transcription,
    videoModel: video,
    video,
    threeD,
  })
}

/** The gateway that `GATEHOUSE_BASE_URL` and `GATEHOUSE_API_KEY` name. */
export const gatehouse = createGatehouse()

export { errorCodeOf, TaskFailedError, TaskTimeoutError } from './errors.ts'
export type { Downloaded } from './outputs.ts'
export { type GatehouseSettings, type TaskSettings, VERSION } from './settings.ts'
export {
  generateThreeD,
  type ThreeDCallOptions,
  type ThreeDFile,
  type ThreeDFormat,
  type ThreeDGenerateOptions,
  type ThreeDImage,
  type ThreeDModel,
  type ThreeDResult,
  type ThreeDStatus,
} from './three-d.ts'
export type { VideoModel } from './video-model.ts'
