/** The calls of a client of each family. A client lacks the members that it does not support. */
import type { Faulty } from './family.ts'

export type Texts = { model: string; texts: string[]; dimensions?: number }
/** `tokens` if the client reports usage. */
export type Embedded = { vectors: number[][]; tokens?: number; model?: string }

export type EmbeddingsClient = Faulty & {
  many(params: Texts): Promise<Embedded>
  /** The client's own call for one text. */
  one(params: { model: string; text: string }): Promise<Embedded>
  /** Requested as base64, and decoded by the program. */
  packed?(params: Texts): Promise<Embedded>
  /** Requested as numbers. */
  plain?(params: Texts): Promise<Embedded>
  tokens?(params: { model: string; tokens: number[][] }): Promise<Embedded>
  /** Whether it reports usage. */
  counts: boolean
}

export type Documents = string[] | { text: string; page: number }[]
export type Question<Kind = Documents> = { model: string; query: string; documents: Kind; top?: number }
/** The indices of the documents, best first; `texts` if the client returns the documents. */
export type Ranked = { order: number[]; scores: number[]; texts?: string[]; units?: number }

export type RerankClient = Faulty & {
  rank(params: Question<string[]>): Promise<Ranked>
  rankObjects?(params: Question<{ text: string; page: number }[]>): Promise<Ranked>
  /** The documents are requested in the response. */
  withTexts?(params: Question<string[]>): Promise<Ranked>
  /** Whether it reports usage. */
  counts: boolean
}

export type Drawing = { model: string; prompt: string; size?: `${number}x${number}`; n?: number }
export type Edit = Drawing & { image: Uint8Array<ArrayBuffer>; mask?: Uint8Array<ArrayBuffer> }
export type Drawn = { images: Uint8Array[]; tokens?: number | undefined }

export type ImagesClient = Faulty & {
  draw(params: Drawing): Promise<Drawn>
  edit(params: Edit): Promise<Drawn>
  /** Its edits take no mask. */
  has_no_masks?: true
  vary?(params: Pick<Edit, 'model' | 'image' | 'size'>): Promise<Drawn>
  /** URLs instead of bytes. */
  links?(params: Drawing): Promise<string[]>
  /** Partial images as they arrive, then the final one. */
  stream?(params: Drawing & { partials: number }): Promise<Drawn & { partials: Uint8Array[] }>
  streamEdit?(params: Edit & { partials: number }): Promise<Drawn & { partials: Uint8Array[] }>
}

export type VideoOrder = { model: string; prompt: string; seconds?: number }
export type Video = { bytes: Uint8Array; media_type: string | null | undefined }

export type VideosClient = Faulty & {
  /** Submitted, awaited and downloaded. */
  film(params: VideoOrder): Promise<Video>
  /** The `fail_code` of a failed one. */
  failure(params: VideoOrder): Promise<string | undefined>
  /** Submitted by one client, and awaited by another one that knows only its id. */
  later?(params: VideoOrder): Promise<Video>
  /** Generated and deleted: whether the list contained the video before, and the error afterwards. */
  remove?(params: VideoOrder): Promise<{ isListed: boolean; gone: unknown }>
}

export type ThreeDOrder = { model: string; prompt: string; polygons?: number }
export type ThreeDMade = { format: string; bytes: Uint8Array }

export type ThreeDClient = Faulty & {
  make(params: ThreeDOrder): Promise<ThreeDMade>
  failure(params: ThreeDOrder): Promise<string | undefined>
  later?(params: ThreeDOrder): Promise<ThreeDMade>
}
