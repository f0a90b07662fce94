/** What a client of each family can be asked, and what it tells; what it lacks it has not. */
import type { Faulty } from './family.ts'

export type Texts = { model: string; texts: string[]; dimensions?: number }
/** `tokens` where the client tells what it has cost. */
export type Embedded = { vectors: number[][]; tokens?: number; model?: string }

export type EmbeddingsClient = Faulty & {
  many(ask: Texts): Promise<Embedded>
  /** The client's own call for one text. */
  one(ask: { model: string; text: string }): Promise<Embedded>
  /** Asked for as base64, and unpacked by the program. */
  packed?(ask: Texts): Promise<Embedded>
  /** Asked for as numbers. */
  plain?(ask: Texts): Promise<Embedded>
  tokens?(ask: { model: string; tokens: number[][] }): Promise<Embedded>
  /** Whether it tells what an answer has cost. */
  counts: boolean
}
