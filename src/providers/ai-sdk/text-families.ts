/** Contract of a vendor's row for embeddings and rerankers behind AI SDK packages. */
import type { InputTypeNames } from '../text-api.ts'

/** A package's own options: of simple types, so that they fit every version of its types. */
export type OwnOptions = Record<string, string | number>
type CallParts = { abortSignal: AbortSignal; providerOptions: Record<string, OwnOptions> }

/** What is used of a package's model; the packages bring several versions of its full type. */
export type EmbeddingModel = {
  doEmbed(options: CallParts & { values: string[] }): PromiseLike<{
    embeddings: number[][]
    usage?: { tokens: number } | undefined
  }>
}
export type RerankingModel = {
  doRerank(
    options: CallParts & { documents: { type: 'text'; values: string[] }; query: string; topN: number },
  ): PromiseLike<{ ranking: { index: number; relevanceScore: number }[] }>
}

/** The options of one model for the fields of a request; an absent field is not supported. */
export type EmbeddingOptions = {
  /** The package's option for the length of the vectors. */
  dimensions?: string
  input_type?: {
    option: string
    values: InputTypeNames
    /** Where the vendor requires one: what is sent when the client sends none. */
    default?: keyof InputTypeNames
  }
  user?: string
}

export type EmbeddingFamily = {
  /** How many inputs one call has at most, by the vendor's and its package's limit. */
  maxInputs(model: string): number
  /** How many tokens all inputs of one call may have; absent: any number. */
  maxTokens?(model: string): number
  options(model: string): EmbeddingOptions
  /** Inputs may be token numbers. */
  acceptsTokens?: true
}

export type RerankFamily = {
  /** The package's option for how much of each document is read. */
  maxTokensPerDocument?: string
}

/** What OpenAI's API accepts, and the packages for APIs in its shape. */
export const OPENAI_EMBEDDINGS: EmbeddingFamily = {
  maxInputs: () => 2048,
  options: () => ({ dimensions: 'dimensions', user: 'user' }),
}
/** What Cohere's models call the types of input, wherever they are served. */
export const COHERE_INPUT_TYPES = { query: 'search_query', document: 'search_document' }
