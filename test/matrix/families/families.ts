/** The families of the matrix besides chat, one line each. */
import { EMBEDDINGS } from './embeddings.ts'
import { type AnyFamily, anyFamily } from './family.ts'
import { IMAGES } from './images.ts'
import { RERANK } from './rerank.ts'

export const FAMILIES: AnyFamily[] = [anyFamily(EMBEDDINGS), anyFamily(RERANK), anyFamily(IMAGES)]
