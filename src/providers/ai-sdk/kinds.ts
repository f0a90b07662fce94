/** The kinds of providers that an AI SDK package serves, one line each. */
import type { ProviderKind } from '../../config/schema.ts'
import type { Provider } from '../provider.ts'
import { createAiSdkVideo } from './ai-sdk-video.ts'
import { ALIBABA } from './alibaba.ts'
import { BLACK_FOREST_LABS } from './black-forest-labs.ts'
import { FAL } from './fal.ts'
import { GOOGLE } from './google.ts'
import { googleVertex } from './google-vertex.ts'
import { MINIMAX } from './minimax.ts'
import { REPLICATE } from './replicate.ts'
import type { AiSdkParts } from './vendor.ts'
import { XAI } from './xai.ts'

export const AI_SDK_KINDS = {
  alibaba: (parts) => createAiSdkVideo(parts, ALIBABA),
  'black-forest-labs': (parts) => createAiSdkVideo(parts, BLACK_FOREST_LABS),
  fal: (parts) => createAiSdkVideo(parts, FAL),
  google: (parts) => createAiSdkVideo(parts, GOOGLE),
  'google-vertex': (parts) => createAiSdkVideo(parts, googleVertex(parts)),
  minimax: (parts) => createAiSdkVideo(parts, MINIMAX),
  replicate: (parts) => createAiSdkVideo(parts, REPLICATE),
  xai: (parts) => createAiSdkVideo(parts, XAI),
} satisfies { [kind in ProviderKind]?: (parts: AiSdkParts) => Provider }
