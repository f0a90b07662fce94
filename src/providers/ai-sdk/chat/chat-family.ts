/** Contract of a vendor's row for chat models behind AI SDK packages. */
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
import type { ProviderKind } from '../../../config/schema/provider-kinds.ts'
import type { ChatRequestField } from '../../../protocols/shared/canonical.ts'
import type { EndpointFamily } from '../../../spec/endpoint-family.ts'

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

/** Fields that change the meaning of a request, and that a package may drop without a warning. */
export type Droppable = 'tools' | 'tool_choice' | 'tool_history' | 'stop' | 'json_object' | 'json_schema' | 'media'

/** How much the model reasons: tokens (0 none, -1 as the model decides), or only that it does. */
type Thinking = { budget?: number; enabled: boolean }

export type ChatFamily = {
  /** The specification's fields that the package has as options, under their names there. */
  options?: { [field in ChatRequestField]?: string }
  /** The package's options for the amount of reasoning; absent: only its own levels of effort. */
  thinking?(requested: Thinking, model: string): JSONObject
  /** Options with which the vendor returns its reasoning, where it does not by default. */
  showReasoning?: JSONObject
  /** Which earlier reasoning is sent back: its text, only what the vendor has signed, or none (the default). */
  reasoningHistory?: 'text' | 'signed'
  /** Members of a package's metadata that hold the vendor's signature, and the family of models that can read it. */
  signature?: { origin: EndpointFamily; shown: string; hidden?: string[]; models?: RegExp }
  /** The package rejects a whole response without `usage`: what it gets in place of an absent one. Zeros count as none. */
  noUsage?: JSONObject
  /** What its package drops without a warning, so that it is refused. */
  drops?: readonly Droppable[]
  /** Its package does nothing for JSON without a schema: a system message asks the model for it. */
  jsonByPrompt?: true
  /** Its package has an option for strict schemas, `strictJsonSchema`. */
  hasStrictSchemas?: true
  /** A conversation with tool calls must define the tools. */
  needsTools?: true
  /** Models that refuse to reason when a tool call is required, or after one that was made without signed reasoning. */
  noReasoningWithForcedTools?: RegExp
  /** System messages come before all others. */
  systemFirst?: true
  /** Images and files are accepted as bytes only, so those given by URL are fetched first. */
  media?: 'bytes'
  /** The vendor's own web search, for a request that asks for one. */
  search?(requested: Record<string, unknown>): { tool?: PackageTool; options?: JSONObject }
  /** The path of the model list below the base URL; absent: none is known. */
  modelsPath?: string
}

/** A row as the parts of the chat adapter see it. */
export type ChatVendor = ChatFamily & { kind: ProviderKind; namespace: string }
