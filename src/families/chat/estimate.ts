/** Estimates the usage of one chat request before it is sent: what is expected, and the most that is possible as far as that is known. */
import { jsonSize } from '../../kit/json-size.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import { mediaTokens } from '../../protocols/shared/token-estimate.ts'
import type { ContentPart } from '../../spec/message.ts'
import type { Estimate, Units } from '../../spec/usage.ts'
import { USUAL_OUTPUT_TOKENS } from './facts.ts'

/** Where neither the request nor the model states a limit: the default of several providers. */
const UNLIMITED_OUTPUT_TOKENS = 16_384
/** What a provider adds: the separators of a message, the prompt for tools (Anthropic documents up to 804 tokens). */
const MOST_TOKENS_OF_A_MESSAGE = 16
const MOST_TOKENS_AROUND = 1_024
/** Anthropic's largest images take 4,784 tokens, OpenAI's at high detail and Google's tiles less. */
const MOST_TOKENS_OF_AN_IMAGE = 5_000
/** Opus at 6 kbit/s, and Google's 32 tokens a second. */
const LEAST_BYTES_OF_AN_AUDIO_TOKEN = 20
/** A file that is only referred to can have any length: that of the context, where it is known. */
const MOST_TOKENS_OF_A_FILE = 200_000
const BYTES_OF_A_TOKEN = 4

/** As much of a request that may pass as an estimate depends on. */
type EstimatedBody = {
  body: unknown
  clientBody: Readonly<Record<string, unknown>>
  mayPass: unknown
  refusal?: unknown
}

type Estimated = {
  /** Of the JSON body, where it contains all of the request; undefined: the texts are measured. */
  body_bytes?: number | undefined
  passthroughRequest?: EstimatedBody | undefined
}

/**
 * No token is shorter than a byte, so the bytes of the text bound its tokens. `requests`: sent together, such as the prompts of
 * one text completion.
 */
export function estimateChat(
  requests: readonly ChatRequest[],
  { limits, context_tokens }: Pick<CatalogueModel, 'limits' | 'context_tokens'>,
  { body_bytes, passthroughRequest }: Estimated = {},
): Estimate {
  input.bytes = input.media_bytes = input.media = input.most_media = input.audio = input.around = 0
  input.isKeptAnHour = false
  let output = 0
  let most_output = 0
  let hasAudioOutput = false
  for (const request of requests) {
    addInput(request, body_bytes === undefined)
    const { n = 1, max_tokens, modalities } = request
    const limit = max_tokens ?? limits.max_tokens?.maximum ?? context_tokens ?? UNLIMITED_OUTPUT_TOKENS
    output += n * Math.min(max_tokens ?? USUAL_OUTPUT_TOKENS, USUAL_OUTPUT_TOKENS)
    most_output += n * Math.min(limit, context_tokens ?? limit)
    hasAudioOutput ||= modalities?.includes('audio') === true
  }
  const system = passthroughRequest?.clientBody.system
  if (Array.isArray(system) && passthroughRequest?.mayPass) noteCacheTime(system)
  // Only the provider understands all of such a request.
  if (passthroughRequest?.refusal && body_bytes === undefined) input.bytes = jsonSize(passthroughRequest.body)
  const bytes = body_bytes === undefined ? input.bytes : Math.max(0, body_bytes - input.media_bytes)
  const most = bytes + input.most_media + input.around + MOST_TOKENS_AROUND
  const most_input = Math.min(most, (context_tokens ?? most) * requests.length)
  const most_units: Units = {
    input_tokens: most_input,
    output_tokens: most_output,
    cache_write_tokens: most_input,
    cache_write_1h_tokens: input.isKeptAnHour ? most_input : 0,
    input_audio_tokens: input.audio,
    output_audio_tokens: hasAudioOutput ? most_output : 0,
    requests: 1,
    service_tier: requests[0]?.service_tier,
  }
  const expected = Math.ceil(bytes / BYTES_OF_A_TOKEN) + input.media
  return {
    expected: {
      input_tokens: Math.min(expected, most_input),
      output_tokens: Math.min(output, most_output),
      requests: 1,
      service_tier: most_units.service_tier,
    },
    most: most_units,
  }
}

type Input = {
  /** Of all texts. */
  bytes: number
  /** Of all media that are in the request. */
  media_bytes: number
  media: number
  most_media: number
  audio: number
  /** Tokens around the messages. */
  around: number
  /** Whether a part of it is to be cached for an hour. */
  isKeptAnHour: boolean
}

/** Of the request at hand: an estimate waits for nothing. */
const input: Input = {
  bytes: 0,
  media_bytes: 0,
  media: 0,
  most_media: 0,
  audio: 0,
  around: 0,
  isKeptAnHour: false,
}

function addInput(request: ChatRequest, isMeasured: boolean): void {
  const { messages, response_format } = request
  input.around += messages.length * MOST_TOKENS_OF_A_MESSAGE
  for (const { content, reasoning_content, tool_calls } of messages) {
    if (Array.isArray(content)) for (const part of content) addPart(part, isMeasured)
    else if (isMeasured && content) input.bytes += Buffer.byteLength(content)
    if (!isMeasured) continue
    if (reasoning_content) input.bytes += Buffer.byteLength(reasoning_content)
    if (tool_calls) input.bytes += jsonSize(tool_calls)
  }
  const tools: readonly object[] | undefined = request.tools ?? request.functions
  if (tools) for (const tool of tools) noteCacheTime(tool)
  if (!isMeasured) return
  if (tools && tools.length > 0) input.bytes += jsonSize(tools)
  if (response_format?.type === 'json_schema') input.bytes += jsonSize(response_format)
}

function addPart(part: ContentPart, isMeasured: boolean): void {
  noteCacheTime(part)
  if (part.type === 'text' || part.type === 'refusal') {
    if (isMeasured) input.bytes += Buffer.byteLength(part.type === 'text' ? part.text : part.refusal)
    return
  }
  input.media += mediaTokens(part)
  if (part.type === 'image_url') {
    input.media_bytes += part.image_url.url.length
    input.most_media += MOST_TOKENS_OF_AN_IMAGE
  } else if (part.type === 'input_audio') {
    const { length } = part.input_audio.data
    const tokens = Math.ceil(length / LEAST_BYTES_OF_AN_AUDIO_TOKEN)
    input.media_bytes += length
    input.most_media += tokens
    input.audio += tokens
  } else {
    const length = part.file.file_data?.length
    input.media_bytes += length ?? 0
    input.most_media += Math.max(length ?? MOST_TOKENS_OF_A_FILE, MOST_TOKENS_OF_AN_IMAGE)
  }
}

/** As the Messages API has it; other providers pass it on to that API. */
function noteCacheTime(block: unknown): void {
  if (Array.isArray(block)) for (const one of block) noteCacheTime(one)
  else if (typeof block === 'object' && block !== null && 'cache_control' in block) {
    const { cache_control } = block as { cache_control?: { ttl?: unknown } | null }
    if (cache_control?.ttl !== undefined && cache_control.ttl !== '5m') input.isKeptAnHour = true
  }
}
