/** The endpoint families that a model can declare (specification, section 1). */
import Type from 'typebox'

export const ENDPOINT_FAMILIES = [
  'chatcompat',
  'chatcompat-response',
  'messages-compat',
  'contentgen-compat',
  'rerank',
  'embeddings',
  'moderations',
  'audio-speech',
  'audio-transcription',
  'realtime',
  'image-generation',
  'video-generation',
  '3d-generation',
  'chatcompat-video',
] as const

/** A family that the specification does not list; further ones may follow. */
export const isAddedFamily = (family: EndpointFamily): boolean => ADDED.includes(family)
const ADDED: readonly EndpointFamily[] = ['moderations', 'audio-speech', 'audio-transcription', 'realtime']

/** The chat families: every chat model supports each of them that the gateway serves. */
export const CHAT_FAMILIES = ['chatcompat', 'chatcompat-response', 'messages-compat', 'contentgen-compat'] as const

export const EndpointFamily = Type.Enum([...ENDPOINT_FAMILIES], {
  description: 'A kind of request that a model answers.',
})
export type EndpointFamily = (typeof ENDPOINT_FAMILIES)[number]

/** Of what a call may be: of a family of models, a call of a tool of an MCP server, or of a path of a provider by name. */
export const CALL_FAMILIES = [...ENDPOINT_FAMILIES, 'mcp', 'passthrough'] as const

export const CallFamily = Type.Enum([...CALL_FAMILIES], {
  description:
    'A kind of request: that of a model, `mcp` for tools of MCP servers, or `passthrough` for paths of providers.',
})
export type CallFamily = (typeof CALL_FAMILIES)[number]
