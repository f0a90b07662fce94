/** Finished files: copied from the provider, stored under a key, served through signed links that expire. */
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

/** One place that stores files: a directory or a bucket. */
export type FileStore = {
  /** Undefined: there is no such file. */
  open(key: string): Promise<StoredFile | undefined>
  /** Atomic: a reader sees the complete file or none. Replaces an existing file. */
  write(
    key: string,
    file: { content_type: string; body: ReadableStream<Uint8Array> },
    signal: AbortSignal,
  ): Promise<{ bytes: number }>
  /** The same with a complete local file, which is moved where possible, and otherwise copied and removed. */
  adopt?(key: string, file: { content_type: string; path: string }): Promise<{ bytes: number }>
  /** No error if there is none. */
  remove(key: string): Promise<void>
  /** Rejects when no file can be written now. */
  ping?(): Promise<void>
  /** Removes files that interrupted writes left before that time (unix milliseconds); returns how many. */
  removeLeftovers?(before_ms: number): Promise<number>
}

export type CopySource = {
  url: string
  headers?: Record<string, string>
  /** What the provider calls it. */
  content_type?: string
  /** The type of such files where neither the provider nor its server names one. */
  family_type?: string
  /** The provider's configuration says so: files may come from private addresses. */
  private_addresses: boolean
  /** The provider's own origin: allowed, since the operator has configured it. */
  own_origin?: string
}

/** Not `done`: the time was up. The bytes so far are stored, and the next call continues from there. */
export type Copied = { done: true; output: TaskOutput } | { done: false; bytes: number }

export type Outputs = {
  /**
   * Copies a provider's file to the key, streamed. Stops cleanly at `until_ms` (by the steady clock), and continues at the next call,
   * with a range request where the server supports it. Throws GatewayError: `output_gone` (404, 410, 403 of an expired
   * link), `output_refused` (a forbidden address, too large), or another code for what may be temporary; with the
   * `fail_code` `output_invalid` if the file is incomplete or not of its type.
   */
  copy(key: string, source: CopySource, options: { until_ms: number; signal: AbortSignal }): Promise<Copied>
  /** Stores the bytes of a stream, with the same check. */
  keep(
    key: string,
    file: { content_type: string; body: ReadableStream<Uint8Array> },
    signal: AbortSignal,
  ): Promise<TaskOutput>
  open(key: string): Promise<StoredFile | undefined>
  remove(key: string): Promise<void>
  /** A link that works without a token until it expires: `{base_url}{path}/{task_id}/content?...`. */
  link(to: { base_url: string; path: string; task_id: string; index: number }): string
  /** Checks the signature and the expiry of such a link. */
  verify(to: { task_id: string; index: number; expires: string; signature: string }): 'valid' | 'expired' | 'forged'
}

/**
 * Keys that are valid and harmless in a directory and in a bucket: segments of letters, digits, `_`, `-` and `.`, none of
 * which begins with a dot, so that no key leads to a parent directory or to a hidden file.
 */
const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/
/** Some file systems allow no longer names; the gateway's keys have some forty characters. */
const MAX_KEY_LENGTH = 200

export function checkKey(key: string): string {
  if (key.length > MAX_KEY_LENGTH || !KEY.test(key)) {
    throw new Error(
      `"${key.slice(0, MAX_KEY_LENGTH)}" is not a valid file key: only letters, digits, "_", "-", "." and "/" are allowed.`,
    )
  }
  return key
}
