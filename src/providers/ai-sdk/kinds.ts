/** The kinds of providers that an AI SDK package serves, one line each. */
import type { ProviderKind } from '../../config/schema.ts'
import type { Provider } from '../provider.ts'
import { createAiSdkVideo } from './ai-sdk-video.ts'
import { ALIBABA } from './alibaba.ts'
import { BLACK_FOREST_LABS } from './black-forest-labs.ts'
import { createAiSdkChat } from './chat/ai-sdk-chat.ts'
import { createAmazonBedrockChat } from './chat/amazon-bedrock.ts'
import { azure } from './chat/azure.ts'
import { googleVertexChat } from './chat/google-vertex.ts'
import { DEEPINFRA, FIREWORKS, GROQ, MISTRAL, plain, TOGETHERAI } from './chat/openai-shaped.ts'
import { ALIBABA_CHAT, COHERE, DEEPSEEK, HUGGINGFACE, PERPLEXITY, XAI_CHAT } from './chat/vendors.ts'
import { FAL } from './fal.ts'
import { GOOGLE } from './google.ts'
import { googleVertex } from './google-vertex.ts'
import { MINIMAX } from './minimax.ts'
import { REPLICATE } from './replicate.ts'
import type { AiSdkParts } from './vendor.ts'
import { XAI } from './xai.ts'

export const AI_SDK_KINDS = {
  alibaba: (parts) => ({ ...createAiSdkChat(parts, ALIBABA_CHAT), ...createAiSdkVideo(parts, ALIBABA) }),
  'amazon-bedrock': createAmazonBedrockChat,
  azure: (parts) => createAiSdkChat(parts, azure(parts)),
  'black-forest-labs': (parts) => createAiSdkVideo(parts, BLACK_FOREST_LABS),
  cohere: (parts) => createAiSdkChat(parts, COHERE),
  deepinfra: (parts) => createAiSdkChat(parts, DEEPINFRA),
  deepseek: (parts) => createAiSdkChat(parts, DEEPSEEK),
  fal: (parts) => createAiSdkVideo(parts, FAL),
  fireworks: (parts) => createAiSdkChat(parts, FIREWORKS),
  google: (parts) => createAiSdkVideo(parts, GOOGLE),
  'google-vertex': (parts) => ({
    ...createAiSdkChat(parts, googleVertexChat(parts)),
    ...createAiSdkVideo(parts, googleVertex(parts)),
  }),
  groq: (parts) => createAiSdkChat(parts, GROQ),
  huggingface: (parts) => createAiSdkChat(parts, HUGGINGFACE),
  minimax: (parts) => createAiSdkVideo(parts, MINIMAX),
  mistral: (parts) => createAiSdkChat(parts, MISTRAL),
  moonshotai: plain({
    kind: 'moonshotai',
    home: 'https://api.moonshot.ai/v1',
    key_env: ['MOONSHOT_API_KEY'],
    load: async (at) => (await import('@ai-sdk/moonshotai')).createMoonshotAI({ apiKey: at.key, fetch: at.fetch }),
  }),
  perplexity: (parts) => createAiSdkChat(parts, PERPLEXITY),
  replicate: (parts) => createAiSdkVideo(parts, REPLICATE),
  togetherai: (parts) => createAiSdkChat(parts, TOGETHERAI),
  xai: (parts) => ({ ...createAiSdkChat(parts, XAI_CHAT), ...createAiSdkVideo(parts, XAI) }),
} satisfies { [kind in ProviderKind]?: (parts: AiSdkParts) => Provider }
