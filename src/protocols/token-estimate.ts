/** How many tokens a prompt has, estimated. */
import { createSample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { ContentPart } from '../spec/message.ts'
import type { ChatRequest } from './canonical.ts'

/** A picture of a megapixel, by the vendors' rules of thumb (a pixel in 750; 85 and 170 a tile). */
const IMAGE_TOKENS = 1300
/** A page of a PDF: its words, and its picture. */
const PAGE_TOKENS = 2000
/** What a page takes in a file, pictures among them. */
const PAGE_BYTES = 60_000
/** Ten tokens a second, of sound that takes 16 KB a second. */
const AUDIO_BYTES_A_TOKEN = 1600
/** The marks around each message and each tool. */
const MESSAGE_TOKENS = 4
const TOOL_TOKENS = 8

/** The tokenizer's count of all words, and rules of thumb for the rest. */
export async function estimateTokens(request: ChatRequest, tokenizer: Tokenizer): Promise<number> {
  const sample = createSample()
  const rest = walk(request, (text) => sample.add(`${text}\n`))
  return rest + (await sample.tokens(tokenizer))
}

/** The same without waiting for a tokenizer: a token is about four bytes. */
export function roughTokens(request: ChatRequest): number {
  let bytes = 0
  const rest = walk(request, (text) => {
    bytes += Buffer.byteLength(text)
  })
  return rest + Math.ceil(bytes / 4)
}

/** Hands out every text of the prompt; what else there is in it is the result, in tokens. */
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

function mediaTokens(part: ContentPart): number {
  if (part.type === 'image_url') return IMAGE_TOKENS
  if (part.type === 'input_audio') return Math.ceil((part.input_audio.data.length * 3) / 4 / AUDIO_BYTES_A_TOKEN)
  const bytes = part.type === 'file' ? ((part.file.file_data?.length ?? 0) * 3) / 4 : 0
  return Math.max(1, Math.round(bytes / PAGE_BYTES)) * PAGE_TOKENS
}
