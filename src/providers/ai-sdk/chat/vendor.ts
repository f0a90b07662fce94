/** What the one chat adapter for AI SDK packages must know of a vendor: a row of data and a few small functions. */
import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4FunctionTool,
  LanguageModelV4ProviderTool,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4Warning,
} from '@ai-sdk/provider'
import type { ProviderKind } from '../../../config/provider-kinds.ts'
import type { ChatRequestField } from '../../../spec/chat-request.ts'
import type { EndpointFamily } from '../../../spec/endpoint-family.ts'
import type { ErrorClassifier } from '../../orders/order-error.ts'
import type { PackageFetch } from '../../upstream/transport-fetch.ts'
import type { PlainRequest } from '../vendor.ts'

export type CallOptions = LanguageModelV4CallOptions
export type StreamPart = LanguageModelV4StreamPart
export type Content = LanguageModelV4Content
export type PackageUsage = LanguageModelV4Usage
export type PackageFinish = LanguageModelV4FinishReason
export type PackageWarning = SharedV4Warning
export type PackageTool = LanguageModelV4FunctionTool | LanguageModelV4ProviderTool

/** What is used of a package's model; the packages bring several versions of its full type. */
export type ChatModel = {
  doGenerate(options: CallOptions): PromiseLike<{
    content: Content[]
    finishReason: PackageFinish
    usage: PackageUsage
    warnings: PackageWarning[]
    providerMetadata?: Record<string, JSONObject> | undefined
    response?: { id?: string | undefined; timestamp?: Date | undefined } | undefined
  }>
  doStream(options: CallOptions): PromiseLike<{ stream: ReadableStream<StreamPart> }>
}

type MakeChatModel = (model: string) => ChatModel

/** Fields that change the meaning, and that a package may lose without a word. */
export type Losable = 'tools' | 'tool_choice' | 'tool_history' | 'stop' | 'json_object' | 'json_schema' | 'media'

/** How much is to be thought: tokens (0 none, -1 as the model sees fit), or simply that it is. */
type Thinking = { budget?: number; enabled: boolean }

export type ChatVendor = {
  kind: ProviderKind
  /** Where the package believes the vendor to be; `base_url` of the configuration replaces it on the way out. */
  home: string
  /** Environment variables of its key, the first that is set wins. */
  key_env: string[]
  /** It can be reached without a key of the configuration's. */
  needsNoKey?: true
  /** The package's own name for its options. */
  namespace: string
  /** The package, loaded at the first use, and what it makes of a model's name. */
  load(at: { key: string; fetch: PackageFetch }): Promise<MakeChatModel>
  /** The address for chat behind a `base_url` that is written for another family of the same vendor. */
  chatUrl?(base_url: string): string
  /** Hosts of the vendor's besides the base URL's, by https only; they may see the key. */
  hosts?: RegExp
  /** Headers that must be asked for first (a token that expires). */
  authorize?(signal: AbortSignal): Promise<Record<string, string>>
  /** The last word on a request before it goes out. */
  send?(request: PlainRequest, model: string): PlainRequest
  /** The house's fields that the package has as options, under their names there. */
  options?: { [field in ChatRequestField]?: string }
  /** How the package is told how much to think; absent: only by its own levels of effort. */
  thinking?(wanted: Thinking, model: string): JSONObject
  /** Options with which reasoning is told, where it is not by itself. */
  showsThoughts?: JSONObject
  /** What goes back of earlier reasoning: its text, only what the vendor has signed, or nothing (the default). */
  thoughts?: 'text' | 'signed'
  /** Members of a package's metadata that hold what the vendor wants back, and whose family's word they are. */
  signs?: { origin: EndpointFamily; shown: string; hidden?: string[]; models?: RegExp }
  /** What its package loses without a word, so that it is refused. */
  loses?: readonly Losable[]
  /** Its package does nothing for JSON without a schema: the model is told in words. */
  jsonByWords?: true
  /** Its package has an option for strict schemas, `strictJsonSchema`. */
  hasStrictSchemas?: true
  /** A conversation with calls of tools must name the tools. */
  needsTools?: true
  /** Models that refuse to think while a call is demanded, or after one that was made without signed thinking. */
  barsThinking?: RegExp
  /** System messages stand in front of all others. */
  systemInFront?: true
  /** Images and files are taken as bytes only: what is given by its address is fetched first. */
  media?: 'bytes'
  /** The vendor's own search of the web, where the caller asks for one. */
  search?(asked: Record<string, unknown>): { tool?: PackageTool; options?: JSONObject }
  judge?: ErrorClassifier
  /** Where its models are listed, below the base URL; absent: nowhere that is known. */
  models?: string
}
