/** What a client of each family can be asked, and what it tells; what it lacks it has not. */
import type { Faulty } from './family.ts'

export type Texts = { model: string; texts: string[]; dimensions?: number }
/** `tokens` where the client tells what it has cost. */
export type Embedded = { vectors: number[][]; tokens?: number; model?: string }

export type EmbeddingsClient = Faulty & {
  many(params: Texts): Promise<Embedded>
  /** The client's own call for one text. */
  one(params: { model: string; text: string }): Promise<Embedded>
  /** Asked for as base64, and unpacked by the program. */
  packed?(params: Texts): Promise<Embedded>
  /** Asked for as numbers. */
  plain?(params: Texts): Promise<Embedded>
  tokens?(params: { model: string; tokens: number[][] }): Promise<Embedded>
  /** Whether it tells what an answer has cost. */
  counts: boolean
}

export type Documents = string[] | { text: string; page: number }[]
export type Question<Kind = Documents> = { model: string; query: string; documents: Kind; top?: number }
/** The places of the documents, the best first; `texts` where the client hands the documents back. */
export type Ranked = { order: number[]; scores: number[]; texts?: string[]; units?: number }

export type RerankClient = Faulty & {
  rank(params: Question<string[]>): Promise<Ranked>
  rankObjects?(params: Question<{ text: string; page: number }[]>): Promise<Ranked>
  /** The documents are asked back. */
  withTexts?(params: Question<string[]>): Promise<Ranked>
  /** Whether it tells what an answer has cost. */
  counts: boolean
}

export type Drawing = { model: string; prompt: string; size?: `${number}x${number}`; n?: number }
export type Edit = Drawing & { image: Uint8Array<ArrayBuffer>; mask?: Uint8Array<ArrayBuffer> }
export type Drawn = { images: Uint8Array[]; tokens?: number | undefined }

export type ImagesClient = Faulty & {
  draw(params: Drawing): Promise<Drawn>
  edit(params: Edit): Promise<Drawn>
  vary?(params: Pick<Edit, 'model' | 'image' | 'size'>): Promise<Drawn>
  /** Addresses instead of bytes. */
  links?(params: Drawing): Promise<string[]>
  /** Partial images as they come, then the complete one. */
  stream?(params: Drawing & { partials: number }): Promise<Drawn & { partials: Uint8Array[] }>
  streamEdit?(params: Edit & { partials: number }): Promise<Drawn & { partials: Uint8Array[] }>
}

export type VideoOrder = { model: string; prompt: string; seconds?: number }
export type Video = { bytes: Uint8Array; media_type: string | null | undefined }

export type VideosClient = Faulty & {
  /** Ordered, waited for, and downloaded. */
  film(params: VideoOrder): Promise<Video>
  /** The `fail_code` of one that fails. */
  failure(params: VideoOrder): Promise<string | undefined>
  /** Ordered by one client, and asked for until it is there by another one that knows its id only. */
  later?(params: VideoOrder): Promise<Video>
  /** Made and deleted: the list of videos before, and what is then said of it. */
  remove?(params: VideoOrder): Promise<{ isListed: boolean; gone: unknown }>
}

export type ThreeDOrder = { model: string; prompt: string; polygons?: number }
export type ThreeDMade = { format: string; bytes: Uint8Array }

export type ThreeDClient = Faulty & {
  make(params: ThreeDOrder): Promise<ThreeDMade>
  failure(params: ThreeDOrder): Promise<string | undefined>
  later?(params: ThreeDOrder): Promise<ThreeDMade>
}
