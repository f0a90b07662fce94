/** The kinds of providers that an AI SDK package serves, one line each. */
import type { ProviderKind } from '../../config/provider-kinds.ts'
import { textMembers } from '../chatcompat/text-apis.ts'
import type { Provider } from '../provider.ts'
import { settingsOf } from '../settings.ts'
import { createFalThreeD } from '../three-d/fal.ts'
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
import { aiSdkImages } from './images/ai-sdk-images.ts'
import { amazonBedrockImages } from './images/amazon-bedrock.ts'
import { GOOGLE_IMAGES, googleVertexImages } from './images/google.ts'
import {
  BLACK_FOREST_LABS_IMAGES,
  FAL_IMAGES,
  FIREWORKS_IMAGES,
  LUMA_IMAGES,
  REPLICATE_IMAGES,
  TOGETHERAI_IMAGES,
  XAI_IMAGES,
} from './images/vendors.ts'
import { MINIMAX } from './minimax.ts'
import { REPLICATE } from './replicate.ts'
import { aiSdkTexts } from './texts/ai-sdk-texts.ts'
import {
  ALIBABA_TEXTS,
  amazonBedrockTexts,
  azureTexts,
  COHERE_TEXTS,
  FIREWORKS_TEXTS,
  GOOGLE_TEXTS,
  googleVertexTexts,
  MISTRAL_TEXTS,
  TOGETHERAI_TEXTS,
  VOYAGE,
} from './texts/vendors.ts'
import type { AiSdkParts } from './vendor.ts'
import { XAI } from './xai.ts'

/** What a package lacks and the provider serves in OpenAI's shape, as the preset of the same provider describes it. */
const compatMembers = (parts: AiSdkParts, preset: string) =>
  textMembers({ ...parts, settings: settingsOf({ ...parts, config: { ...parts.config, preset } }) })

export const AI_SDK_KINDS = {
  alibaba: (parts) => ({
    ...createAiSdkChat(parts, ALIBABA_CHAT),
    ...createAiSdkVideo(parts, ALIBABA),
    ...aiSdkTexts(parts, ALIBABA_TEXTS),
  }),
  'amazon-bedrock': (parts) => ({
    ...createAmazonBedrockChat(parts),
    ...amazonBedrockTexts(parts),
    ...amazonBedrockImages(parts),
  }),
  azure: (parts) => ({ ...createAiSdkChat(parts, azure(parts)), ...azureTexts(parts) }),
  'black-forest-labs': (parts) => ({
    ...createAiSdkVideo(parts, BLACK_FOREST_LABS),
    ...aiSdkImages(parts, BLACK_FOREST_LABS_IMAGES),
  }),
  cohere: (parts) => ({ ...createAiSdkChat(parts, COHERE), ...aiSdkTexts(parts, COHERE_TEXTS) }),
  deepinfra: (parts) => createAiSdkChat(parts, DEEPINFRA),
  deepseek: (parts) => createAiSdkChat(parts, DEEPSEEK),
  fal: (parts) => ({
    ...createAiSdkVideo(parts, FAL),
    ...aiSdkImages(parts, FAL_IMAGES),
    threeD: createFalThreeD(parts),
  }),
  fireworks: (parts) => ({
    ...createAiSdkChat(parts, FIREWORKS),
    ...aiSdkTexts(parts, FIREWORKS_TEXTS),
    ...aiSdkImages(parts, FIREWORKS_IMAGES),
  }),
  google: (parts) => ({
    ...createAiSdkVideo(parts, GOOGLE),
    ...aiSdkTexts(parts, GOOGLE_TEXTS),
    ...aiSdkImages(parts, GOOGLE_IMAGES),
  }),
  'google-vertex': (parts) => ({
    ...createAiSdkChat(parts, googleVertexChat(parts)),
    ...createAiSdkVideo(parts, googleVertex(parts)),
    ...googleVertexTexts(parts),
    ...googleVertexImages(parts),
  }),
  groq: (parts) => createAiSdkChat(parts, GROQ),
  huggingface: (parts) => createAiSdkChat(parts, HUGGINGFACE),
  minimax: (parts) => createAiSdkVideo(parts, MINIMAX),
  mistral: (parts) => ({
    ...compatMembers(parts, 'mistral'),
    ...createAiSdkChat(parts, MISTRAL),
    ...aiSdkTexts(parts, MISTRAL_TEXTS),
  }),
  moonshotai: plain({
    kind: 'moonshotai',
    home: 'https://api.moonshot.ai/v1',
    key_env: ['MOONSHOT_API_KEY'],
    load: async (at) => (await import('@ai-sdk/moonshotai')).createMoonshotAI({ apiKey: at.key, fetch: at.fetch }),
  }),
  perplexity: (parts) => createAiSdkChat(parts, PERPLEXITY),
  replicate: (parts) => ({ ...createAiSdkVideo(parts, REPLICATE), ...aiSdkImages(parts, REPLICATE_IMAGES) }),
  togetherai: (parts) => ({
    ...createAiSdkChat(parts, TOGETHERAI),
    ...aiSdkTexts(parts, TOGETHERAI_TEXTS),
    ...aiSdkImages(parts, TOGETHERAI_IMAGES),
  }),
  voyage: (parts) => ({ id: parts.id, kind: 'voyage', ...aiSdkTexts(parts, VOYAGE) }),
  xai: (parts) => ({
    ...createAiSdkChat(parts, XAI_CHAT),
    ...createAiSdkVideo(parts, XAI),
    ...aiSdkImages(parts, XAI_IMAGES),
  }),
} satisfies { [kind in ProviderKind]?: (parts: AiSdkParts) => Provider }

export type AiSdkKind = keyof typeof AI_SDK_KINDS

/** What a vendor of a kind of our own draws by its package. */
export const lumaImages = (parts: AiSdkParts) => aiSdkImages(parts, LUMA_IMAGES)
