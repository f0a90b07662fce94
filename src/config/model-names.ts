/** What a model is by its name, where nobody says it outright: as rows of data. */
import { matchesGlob } from '../kit/glob.ts'
import { CHAT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'

type Row = { families: readonly EndpointFamily[]; globs: readonly string[] }

/** Globs over names in lower case; the first row that fits wins. */
const ROWS: readonly Row[] = [
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
  return ROWS.find(({ globs }) => globs.some((glob) => matchesGlob(glob, lower)))?.families ?? CHAT_FAMILIES
}
