/** Which member of a provider serves which family. */
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Provider } from './provider.ts'

/** The member of a provider that serves a family. */
export const SERVED_BY = {
  chatcompat: 'chat',
  'chatcompat-response': 'chat',
  'messages-compat': 'chat',
  'contentgen-compat': 'chat',
  rerank: 'rerank',
  embeddings: 'embeddings',
  moderations: 'moderations',
  'audio-speech': 'speech',
  'audio-transcription': 'transcription',
  realtime: 'realtime',
  'image-generation': 'images',
  'video-generation': 'video',
  '3d-generation': 'threeD',
  'chatcompat-video': 'video',
} as const satisfies Record<EndpointFamily, keyof Provider>

export type FamilyMember = (typeof SERVED_BY)[EndpointFamily]

export const servesFamily = (provider: Provider, family: EndpointFamily): boolean =>
  provider[SERVED_BY[family]] !== undefined
