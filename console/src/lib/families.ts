/** The names of the families of endpoints, as people read them. */
const NAMES: Record<string, string> = {
  chatcompat: 'Chat',
  'chatcompat-response': 'Responses',
  'messages-compat': 'Messages',
  'contentgen-compat': 'Generate content',
  embeddings: 'Embeddings',
  rerank: 'Rerank',
  moderations: 'Moderations',
  'audio-speech': 'Speech',
  'audio-transcription': 'Transcription',
  realtime: 'Realtime',
  'image-generation': 'Images',
  'video-generation': 'Video',
  'chatcompat-video': 'Video (chat)',
  '3d-generation': '3D',
}
const OTHER_NAMES: Record<string, string> = { mcp: 'Tools of MCP servers', passthrough: "Providers' own paths" }
const CHAT_DIALECTS = ['chatcompat-response', 'messages-compat', 'contentgen-compat']

export const familyName = (family: string): string => NAMES[family] ?? OTHER_NAMES[family] ?? family

/** What a model is for: the four dialects of chat are one use. */
export const usesOf = (families: string[]): string[] =>
  families.filter((family) => !(families.includes('chatcompat') && CHAT_DIALECTS.includes(family)))

/** Every use, for a filter. */
export const USES = usesOf(Object.keys(NAMES)).map((value) => ({ value, label: familyName(value) }))

/** Every kind of call that a token may be given. */
export const CALL_FAMILIES = [...Object.keys(NAMES), ...Object.keys(OTHER_NAMES)]
