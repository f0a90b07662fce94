/** The family of a model by its name or by its type in a model list, where the configuration declares none. */
import { matchesGlob } from '../kit/glob.ts'
import { CHAT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'

type Row = {
  family: EndpointFamily
  /** What model lists call such a model beside its name: its type, or what it gives. Absent: the name alone tells. */
  type?: RegExp
  globs: readonly string[]
  /** Names that only look alike. */
  but?: readonly string[]
}

/** Globs over names in lower case; the first row that fits wins. */
const ROWS: readonly Row[] = [
  {
    family: 'image-generation',
    // Together's type, the end of Hugging Face's `text-to-image`, and the only output of such a model of OpenRouter's.
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
      // Open models and those of smaller vendors.
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
    // Videos, and upscalers or readers of images.
    but: ['*video*', '*redux*', '*-vl*', '*vision*'],
  },
  { family: 'rerank', type: /rerank/i, globs: ['*rerank*'] },
  // Together's type `moderation` is of models that answer as chat models do.
  { family: 'moderations', globs: ['*moderation*'] },
  {
    family: 'embeddings',
    type: /embed/i,
    // Families of open models beside the word itself: BGE, E5, GTE, MiniLM, and Voyage's.
    globs: ['*embed*', 'bge-*', '*/bge-*', 'e5-*', '*/e5-*', '*-e5-*', 'gte-*', '*/gte-*', '*minilm*', 'voyage-*'],
  },
]

/** The families besides those of chat that a name or a model list tells. */
export const NAMED_FAMILIES: readonly EndpointFamily[] = ROWS.map(({ family }) => family)

/** The family of a model of this type, in the words of a model list; undefined: chat, or one that is not served. */
export const familyOfType = (type: string): EndpointFamily | undefined =>
  ROWS.find((row) => row.type?.test(type.trim()))?.family

/** The family besides those of chat that a name tells. */
export function familyOfName(name: string): EndpointFamily | undefined {
  const lower = name.toLowerCase()
  const fits = (globs: readonly string[] = []) => globs.some((glob) => matchesGlob(glob, lower))
  return ROWS.find(({ globs, but }) => fits(globs) && !fits(but))?.family
}

/** The families of a model that declares none: those of chat unless its name tells another. */
export function familiesOfName(name: string): readonly EndpointFamily[] {
  const family = familyOfName(name)
  return family ? [family] : CHAT_FAMILIES
}
