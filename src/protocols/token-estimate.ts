/** Estimates the number of tokens of a prompt. */
import { createSample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { ContentPart } from '../spec/message.ts'
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
  const rest = walk(request, (text) => sample.add(`${text}\n`))
  return rest + (await sample.tokens(tokenizer))
}

/** The same without a tokenizer: a token is about four bytes. */
export function roughTokens(request: ChatRequest): number {
  let bytes = 0
  const rest = walk(request, (text) => {
    bytes += Buffer.byteLength(text)
  })
  return rest + Math.ceil(bytes / 4)
}

/** Fewer than the prompt has in nearly every case: few texts have more than eight characters a token. Cheap. */
export function leastTokens(request: ChatRequest): number {
  let characters = 0
  const rest = walk(request, (text) => {
    characters += text.length
  })
  return rest + Math.floor(characters / 8)
}

/** Passes each text of the prompt to `addText`, and returns an estimate of the rest in tokens. */
function walk(request: ChatRequest, addText: (text: string) => void): number {
  let tokens = 0
  for (const { content, reasoning_content, tool_calls = [] } of request.messages) {
    tokens += MESSAGE_TOKENS
    for (const part of Array.isArray(content) ? content : [content ?? '']) {
      const text = textOf(part)
      if (text === undefined) tokens += mediaTokens(part as ContentPart)
      else addText(text)
    }
    if (reasoning_content) addText(reasoning_content)
    for (const call of tool_calls) addText(`${call.function.name} ${call.function.arguments}`)
  }
  for (const tool of request.tools ?? request.functions ?? []) {
    tokens += TOOL_TOKENS
    addText(JSON.stringify(tool))
  }
  if (request.response_format?.type === 'json_schema') addText(JSON.stringify(request.response_format.json_schema))
  return tokens
}

function textOf(part: string | ContentPart): string | undefined {
  if (typeof part === 'string') return part
  if (part.type === 'text') return part.text
  return part.type === 'refusal' ? part.refusal : undefined
}

/** Of an image, an audio or a file. */
export function mediaTokens(part: ContentPart): number {
  if (part.type === 'image_url') return IMAGE_TOKENS
  if (part.type === 'input_audio') return Math.ceil((part.input_audio.data.length * 3) / 4 / AUDIO_BYTES_A_TOKEN)
  const bytes = part.type === 'file' ? ((part.file.file_data?.length ?? 0) * 3) / 4 : 0
  return Math.max(1, Math.round(bytes / PAGE_BYTES)) * PAGE_TOKENS
}
