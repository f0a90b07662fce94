/** Frees the memory of bytes that nobody uses any more: the garbage collector, which sees little of it, would let hundreds of megabytes wait. */

/** Those of a pool, and parts of others, stay. */
const LEAST_BYTES = 16 * 1024

export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  if (byteLength === buffer.byteLength && byteLength >= LEAST_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
