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

export type Documents = string[] | { text: string; page: number }[]
export type Question<Kind = Documents> = { model: string; query: string; documents: Kind; top?: number }
/** The places of the documents, the best first; `texts` where the client hands the documents back. */
export type Ranked = { order: number[]; scores: number[]; texts?: string[]; units?: number }

export type RerankClient = Faulty & {
  rank(ask: Question<string[]>): Promise<Ranked>
  rankObjects?(ask: Question<{ text: string; page: number }[]>): Promise<Ranked>
  /** The documents are asked back. */
  withTexts?(ask: Question<string[]>): Promise<Ranked>
  /** Whether it tells what an answer has cost. */
  counts: boolean
}
