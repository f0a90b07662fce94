/** The clients of the matrix, one line each. */
import { aiAnthropic } from './clients/ai-anthropic.ts'
import { aiOpenaiChat } from './clients/ai-openai-chat.ts'
import { aiOpenaiCompatible } from './clients/ai-openai-compatible.ts'
import { anthropic0 } from './clients/anthropic-0.ts'
import { anthropic1 } from './clients/anthropic-1.ts'
import { langchain } from './clients/langchain.ts'
import { openai6 } from './clients/openai-6.ts'
import { openai7 } from './clients/openai-7.ts'
import type { Row } from './words.ts'

export const ROWS: Row[] = [
  openai7,
  openai6,
  anthropic1,
  anthropic0,
  aiOpenaiChat,
  aiAnthropic,
  aiOpenaiCompatible,
  langchain,
]
