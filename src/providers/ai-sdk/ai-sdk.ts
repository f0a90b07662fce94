/** The provider of a vendor behind an AI SDK package: a member for each family that its row has. */
import type { Provider } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { createAiSdkSpeech, createAiSdkTranscription } from './audio.ts'
import { createAiSdkChat } from './chat/ai-sdk-chat.ts'
import { connect } from './connection.ts'
import { createAiSdkEmbeddings } from './embeddings.ts'
import { createAiSdkImages } from './images/ai-sdk-images.ts'
import { createAiSdkRerank } from './rerank.ts'
import type { AiSdkVendor } from './vendor-row.ts'
import { AI_SDK_VENDORS, type AiSdkKind } from './vendors.ts'
import { createAiSdkVideo } from './video/ai-sdk-video.ts'

/** Throws an Error that names the provider when its configuration cannot work. */
export function createAiSdkProvider(kind: AiSdkKind, parts: AdapterParts): Provider {
  const found: AiSdkVendor | ((parts: AdapterParts) => AiSdkVendor) = AI_SDK_VENDORS[kind]
  const row = typeof found === 'function' ? found(parts) : found
  const { chat, embeddings, images, rerank, speech, transcription, video } = row
  const own = { ...parts, kind }
  return {
    ...row.others?.(parts),
    id: parts.id,
    kind,
    ...(chat ? createAiSdkChat(connect(own, row, chat)) : {}),
    ...(embeddings ? { embeddings: createAiSdkEmbeddings(connect(own, row, embeddings)) } : {}),
    ...(images ? { images: createAiSdkImages(connect(own, row, images)) } : {}),
    ...(rerank ? { rerank: createAiSdkRerank(connect(own, row, rerank)) } : {}),
    ...(speech ? { speech: createAiSdkSpeech(connect(own, row, speech)) } : {}),
    ...(transcription ? { transcription: createAiSdkTranscription(connect(own, row, transcription)) } : {}),
    ...(video ? { video: createAiSdkVideo(connect(own, row, video)) } : {}),
  }
}
