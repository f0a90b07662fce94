/** The clients of the matrix, one line each. */
import { aiAnthropic } from './clients/ai-anthropic.ts'
import { aiGoogle } from './clients/ai-google.ts'
import { aiOpenaiChat } from './clients/ai-openai-chat.ts'
import { aiOpenaiCompatible } from './clients/ai-openai-compatible.ts'
import { aiOpenaiResponses } from './clients/ai-openai-responses.ts'
import { aiOpenrouter } from './clients/ai-openrouter.ts'
import { anthropic0 } from './clients/anthropic-0.ts'
import { anthropic1 } from './clients/anthropic-1.ts'
import { genai1 } from './clients/genai-1.ts'
import { genai2 } from './clients/genai-2.ts'
import { genai3 } from './clients/genai-3.ts'
import { langchainChat } from './clients/langchain-chat.ts'
import { langchainResponses } from './clients/langchain-responses.ts'
import { openai5 } from './clients/openai-5.ts'
import { openai5Responses } from './clients/openai-5-responses.ts'
import { openai6 } from './clients/openai-6.ts'
import { openai6Responses } from './clients/openai-6-responses.ts'
import { openai7 } from './clients/openai-7.ts'
import { openai7Responses } from './clients/openai-7-responses.ts'
import type { Row } from './types.ts'

export const ROWS: Row[] = [
  openai7,
  openai7Responses,
  openai6,
  openai6Responses,
  openai5,
  openai5Responses,
  anthropic1,
  anthropic0,
  genai3,
  genai2,
  genai1,
  ...aiOpenaiResponses,
  ...aiOpenaiChat,
  ...aiAnthropic,
  ...aiGoogle,
  ...aiOpenaiCompatible,
  aiOpenrouter,
  langchainChat,
  langchainResponses,
]
