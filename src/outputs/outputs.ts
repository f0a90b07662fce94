/** Where finished files live: copied from the vendor, kept under a key, handed out by signed links that expire. */
import type { TaskOutput } from '../spec/task.ts'

/** A part of a file: `last` is inclusive. */
export type ByteRange = { first: number; last: number }

export type StoredFile = {
  content_type: string
  /** Of the whole file. */
  bytes: number
  /** Changes when the file does; for `etag`. */
  version: string
  /** The bytes of the range, or of the whole file. */
  body(range?: ByteRange): ReadableStream<Uint8Array>
}

/** One place that keeps bytes: a directory, or a bucket. */
export type FileStore = {
  /** Undefined: there is no such file. */
  open(key: string): Promise<StoredFile | undefined>
  /** Complete or not there at all; whoever opens the key never sees half a file. Replaces what was there. */
  write(
    key: string,
    file: { content_type: string; body: ReadableStream<Uint8Array> },
    signal: AbortSignal,
  ): Promise<{ bytes: number }>
  /** The same with a whole file of this machine, which is gone afterwards: moved, where that is possible. */
  adopt?(key: string, file: { content_type: string; path: string }): Promise<{ bytes: number }>
  /** No error if there is none. */
  remove(key: string): Promise<void>
  /** Removes what broken-off writes left behind before that time (unix milliseconds); how many there were. */
  tidy?(before_ms: number): Promise<number>
}

export type CopySource = {
  url: string
  headers?: Record<string, string>
  content_type?: string
  /** The provider's configuration says so: files may come from private addresses. */
  private_addresses: boolean
  /** The provider's own origin, which the operator has configured and which is therefore allowed. */
  own_origin?: string
}

/** `more`: the time was up; what has come so far is kept, and the next call goes on from there. */
export type Copied = { done: true; output: TaskOutput } | { done: false; bytes: number }

export type Outputs = {
  /**
   * Copies a vendor's file under the key, streamed. Stops in good order when `until_ms` (unix) is reached, and goes on
   * at the next call, by a range request where the vendor knows them. Throws GatewayError: `output_gone` (404, 410,
   * 403 of an expired link), `output_refused` (a forbidden address, too large), or what may pass (anything else).
   */
  copy(key: string, source: CopySource, options: { until_ms: number; signal: AbortSignal }): Promise<Copied>
  /** Keeps bytes that are at hand. */
  keep(
    key: string,
    file: { content_type: string; body: ReadableStream<Uint8Array> },
    signal: AbortSignal,
  ): Promise<TaskOutput>
  open(key: string): Promise<StoredFile | undefined>
  remove(key: string): Promise<void>
  /** A link that works without a token until it expires: `{base_url}{path}/{task_id}/content?...`. */
  link(to: { base_url: string; path: string; task_id: string; index: number }): string
  /** Whether the query of such a link is ours and not over its time. */
  verify(to: { task_id: string; index: number; expires: string; signature: string }): 'valid' | 'expired' | 'forged'
}

/** Segments of letters, digits, `_`, `-` and `.`, none of which begins with a dot: no way leads up or to a hidden name. */
const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/
/** Some file systems take no longer names; a key of ours has some forty characters. */
const LONGEST = 200

export function checkKey(key: string): string {
  if (key.length > LONGEST || !KEY.test(key)) {
    throw new Error(`"${key.slice(0, LONGEST)}" is no key of a file: letters, digits, "_", "-", "." and "/" only.`)
  }
  return key
}
