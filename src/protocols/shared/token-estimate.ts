/** Estimates the number of tokens of a prompt. */
import { createSample } from '../../kit/sample.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { ContentPart } from '../../spec/message.ts'
import type { ChatRequest } from './canonical.ts'

/** An image of one megapixel, by the vendors' rules (one token per 750 pixels; 85 plus 170 per tile). */
const IMAGE_TOKENS = 1300
/** A page of a PDF: its text and its image. */
const PAGE_TOKENS = 2000
/** The size of a page in a file, images included. */
const PAGE_BYTES = 60_000
/** Ten tokens per second of audio, which takes 16 KB per second. */
const AUDIO_BYTES_A_TOKEN = 1600
/** The separators around each message and each tool. */
const MESSAGE_TOKENS = 4
const TOOL_TOKENS = 8

/** The tokenizer's count of all text, and fixed estimates for the rest. */
export async function estimateTokens(request: ChatRequest, tokenizer: Tokenizer): Promise<number> {
  const sample = createSample()
  const rest = walk(request, { add: (text) => sample.add(`${text}\n`) })
  return rest + (await sample.tokens(tokenizer))
}

/** The same without a tokenizer: a token is about four bytes. */
export function roughTokens(request: ChatRequest): number {
  const texts = new TextSize(Buffer.byteLength)
  return walk(request, texts) + Math.ceil(texts.size / 4)
}

/** Fewer than the prompt has in nearly every case: few texts have more than eight characters a token. Cheap. */
export function leastTokens(request: ChatRequest): number {
  const texts = new TextSize(charactersOf)
  return walk(request, texts) + Math.floor(texts.size / 8)
}

const charactersOf = ({ length }: string): number => length

class TextSize {
  readonly #sizeOf: (text: string) => number
  size = 0

  constructor(sizeOf: (text: string) => number) {
    this.#sizeOf = sizeOf
  }

  add(text: string): void {
    this.size += this.#sizeOf(text)
  }
}

/** Adds each text of the prompt, and returns an estimate of the rest in tokens. */
function walk(request: ChatRequest, texts: { add(text: string): void }): number {
  const { messages, tools = request.functions, response_format } = request
  let tokens = messages.length * MESSAGE_TOKENS
  for (const { content, reasoning_content, tool_calls } of messages) {
    if (typeof content === 'string') texts.add(content)
    else if (content) tokens += walkParts(content, texts)
    if (reasoning_content) texts.add(reasoning_content)
    if (tool_calls) for (const { function: called } of tool_calls) texts.add(`${called.name} ${called.arguments}`)
  }
  if (tools) {
    tokens += tools.length * TOOL_TOKENS
    for (const tool of tools) texts.add(JSON.stringify(tool))
  }
  if (response_format?.type === 'json_schema') texts.add(JSON.stringify(response_format.json_schema))
  return tokens
}

function walkParts(parts: readonly (string | ContentPart)[], texts: { add(text: string): void }): number {
  let tokens = 0
  for (const part of parts) {
    const text = textOf(part)
    if (text === undefined) tokens += mediaTokens(part as ContentPart)
    else texts.add(text)
  }
  return tokens
}

function textOf(part: string | ContentPart): string | undefined {
  if (typeof part === 'string') return part
  if (part.type === 'text') return part.text
  return part.type === 'refusal' ? part.refusal : undefined
}

export function mediaTokens(part: ContentPart): number {
  if (part.type === 'image_url') return IMAGE_TOKENS
  if (part.type === 'input_audio') return Math.ceil((part.input_audio.data.length * 3) / 4 / AUDIO_BYTES_A_TOKEN)
  const bytes = part.type === 'file' ? ((part.file.file_data?.length ?? 0) * 3) / 4 : 0
  return Math.max(1, Math.round(bytes / PAGE_BYTES)) * PAGE_TOKENS
}
