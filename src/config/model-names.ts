/** What a model is by its name, where nobody says it outright: as rows of data. */
import { matchesGlob } from '../kit/glob.ts'
import { CHAT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'

type Row = {
  families: readonly EndpointFamily[]
  globs: readonly string[]
  /** Names that only look alike. */
  but?: readonly string[]
}

/** Globs over names in lower case; the first row that fits wins. */
const ROWS: readonly Row[] = [
  {
    families: ['image-generation'],
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
  { families: ['rerank'], globs: ['*rerank*'] },
  {
    families: ['embeddings'],
    // Families of open models beside the word itself: BGE, E5, GTE, MiniLM, and Voyage's.
    globs: ['*embed*', 'bge-*', '*/bge-*', 'e5-*', '*/e5-*', '*-e5-*', 'gte-*', '*/gte-*', '*minilm*', 'voyage-*'],
  },
]

/** The families of a model that declares none: those of chat unless its name says something else. */
export function familiesOfName(name: string): readonly EndpointFamily[] {
  const lower = name.toLowerCase()
  const fits = (globs: readonly string[] = []) => globs.some((glob) => matchesGlob(glob, lower))
  return ROWS.find(({ globs, but }) => fits(globs) && !fits(but))?.families ?? CHAT_FAMILIES
}
