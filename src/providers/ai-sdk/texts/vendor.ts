/** What the one adapter for embeddings and rerankers behind AI SDK packages must know of a vendor: a row of data. */
import type { ProviderKind } from '../../../config/provider-kinds.ts'
import type { InputTypeNames } from '../../text-api.ts'
import type { PackageFetch } from '../../upstream/transport-fetch.ts'
import type { PlainRequest } from '../vendor.ts'

/** A package's own options: plain ones, so that they fit every version of its types. */
export type OwnOptions = Record<string, string | number>
type CallParts = { abortSignal: AbortSignal; providerOptions: Record<string, OwnOptions> }

/** What is used of a package's model; the packages bring several versions of its full type. */
type EmbeddingModel = {
  doEmbed(options: CallParts & { values: string[] }): PromiseLike<{
    embeddings: number[][]
    usage?: { tokens: number } | undefined
  }>
}
type RerankingModel = {
  doRerank(
    options: CallParts & { documents: { type: 'text'; values: string[] }; query: string; topN: number },
  ): PromiseLike<{ ranking: { index: number; relevanceScore: number }[] }>
}

/** How one model takes what a request may say; a word that is absent cannot be said. */
export type EmbeddingWords = {
  /** The package's option for the length of the vectors. */
  dimensions?: string
  input_type?: {
    option: string
    words: InputTypeNames
    /** Where the vendor demands one: what is told when the caller tells none. */
    default?: keyof InputTypeNames
  }
  user?: string
}

export type TextVendor = {
  kind: ProviderKind
  /** Where the package believes the vendor to be; `base_url` of the configuration replaces it on the way out. */
  home: string
  /** Environment variables of its key, the first that is set wins. */
  key_env: string[]
  /** It can be reached without a key of the configuration's. */
  needsNoKey?: true
  /** The package's own name for its options. */
  namespace: string
  /** The address for this family behind a `base_url` that is written for another of the same vendor. */
  textUrl?(base_url: string): string
  /** Hosts of the vendor's besides the base URL's, by https only; they may see the key. */
  hosts?: RegExp
  /** Headers that must be asked for first (a token that expires). */
  authorize?(signal: AbortSignal): Promise<Record<string, string>>
  /** The last word on a request before it goes out. */
  send?(request: PlainRequest, model: string): PlainRequest
  embedding?: {
    /** The package, loaded at the first use, and what it makes of a model's name. */
    load(at: { key: string; fetch: PackageFetch }): Promise<(model: string) => EmbeddingModel>
    /** How many inputs one call has at most, by the vendor's and its package's limit. */
    most_inputs(model: string): number
    /** How many tokens all inputs of one call may have; absent: any number. */
    most_tokens?(model: string): number
    words(model: string): EmbeddingWords
    takesTokens?: true
  }
  reranking?: {
    load(at: { key: string; fetch: PackageFetch }): Promise<(model: string) => RerankingModel>
    /** The package's option for how much of each document is read. */
    max_tokens_per_doc?: string
  }
}
