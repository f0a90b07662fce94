/** The families of the matrix besides chat, one line each. */
import { EMBEDDINGS } from './embeddings.ts'
import { type AnyFamily, anyFamily } from './family.ts'
import { IMAGES } from './images.ts'
import { RERANK } from './rerank.ts'
import { THREE_D } from './three-d.ts'
import { VIDEOS } from './videos.ts'

export const FAMILIES: AnyFamily[] = [
  anyFamily(EMBEDDINGS),
  anyFamily(RERANK),
  anyFamily(IMAGES),
  anyFamily(VIDEOS),
  anyFamily(THREE_D),
]
