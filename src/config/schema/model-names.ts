/** Infers the family of a model from its name or its type in a model list, when the configuration has none. */
import { matchesGlob } from '../../kit/glob.ts'
import { CHAT_FAMILIES, type EndpointFamily } from '../../spec/endpoint-family.ts'

type Row = {
  family: EndpointFamily
  /** The types or outputs that model lists give such a model. Absent: only the name decides. */
  type?: RegExp
  globs: readonly string[]
  /** Names that match `names` but are not of this family. */
  but?: readonly string[]
}

/** Globs over lower-case names; the first matching row wins. */
const ROWS: readonly Row[] = [
  {
    family: 'image-generation',
    // Together's type, the suffix of Hugging Face's `text-to-image`, and the only output of such a model at OpenRouter.
    type: /^(image|.*-to-image)$/i,
    globs: [
      // OpenAI, Google, xAI.
      '*gpt-image*',
      '*chatgpt-image*',
      '*dall-e*',
      '*imagen-*',
      '*imagen4*',
      '*grok-*image*',
      '*-image-generation*',
      // Open models and models of smaller vendors.
      '*flux*',
      '*stable-diffusion*',
      '*stable-image*',
      '*sdxl*',
      '*seedream*',
      '*qwen-image*',
      '*ideogram*',
      '*recraft*',
      '*cogview*',
      '*hidream*',
      '*z-image*',
      '*titan-image*',
      '*nova-canvas*',
    ],
    // Videos, upscalers, and models that read images.
    but: ['*video*', '*redux*', '*-vl*', '*vision*'],
  },
  { family: 'rerank', type: /rerank/i, globs: ['*rerank*'] },
  // Together gives the type `moderation` to models that respond as chat models do.
  { family: 'moderations', globs: ['*moderation*'] },
  // OpenAI, Groq, and open models: Whisper, Parakeet, Canary; Orpheus, Kokoro.
  {
    family: 'audio-transcription',
    type: /transcri|speech-to-text/i,
    globs: ['*whisper*', '*transcribe*', '*parakeet*'],
  },
  { family: 'audio-speech', type: /^text-to-speech$/i, globs: ['*tts*', '*orpheus*', '*kokoro*'], but: ['*gemini*'] },
  // OpenAI, xAI; the Live API of Gemini.
  {
    family: 'realtime',
    globs: ['*realtime*', 'gemini*-live-*', '*/gemini*-live-*'],
    but: ['*transcribe*', '*whisper*'],
  },
  {
    family: 'embeddings',
    type: /embed/i,
    // Families of open models beside the word itself: BGE, E5, GTE, MiniLM, and Voyage's.
    globs: ['*embed*', 'bge-*', '*/bge-*', 'e5-*', '*/e5-*', '*-e5-*', 'gte-*', '*/gte-*', '*minilm*', 'voyage-*'],
  },
]

/** The families besides chat that a name or a model list can show. */
export const NAMED_FAMILIES: readonly EndpointFamily[] = ROWS.map(({ family }) => family)

/** The family of a model of this model-list type; undefined: chat, or a family that is not served. */
export const familyOfType = (type: string): EndpointFamily | undefined =>
  ROWS.find((row) => row.type?.test(type.trim()))?.family

/** The family besides chat that a name shows. */
export function familyOfName(name: string): EndpointFamily | undefined {
  const lower = name.toLowerCase()
  const fits = (globs: readonly string[] = []) => globs.some((glob) => matchesGlob(glob, lower))
  return ROWS.find(({ globs, but }) => fits(globs) && !fits(but))?.family
}

/** The families of a model without declared ones: chat, unless its name shows another. */
export function familiesOfName(name: string): readonly EndpointFamily[] {
  const family = familyOfName(name)
  return family ? [family] : CHAT_FAMILIES
}
