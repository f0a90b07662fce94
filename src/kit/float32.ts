/** Encodes vectors as base64 of little-endian 32-bit floats, the compact format of embeddings: a third of their JSON. */

const BYTES = 4

export function base64OfFloats(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * BYTES))
  for (const [at, value] of vector.entries()) view.setFloat32(at * BYTES, value, true)
  return Buffer.from(view.buffer).toString('base64')
}

/** Undefined if the text is not base64 of whole floats. */
export function floatsOfBase64(text: string): number[] | undefined {
  const bytes = Buffer.from(text, 'base64')
  // Node skips characters outside the alphabet; a wrong length reveals them.
  const isWhole = text.replace(/=+$/, '').length === Math.ceil((bytes.length * 4) / 3)
  if (!isWhole || bytes.length === 0 || bytes.length % BYTES !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return Array.from({ length: bytes.length / BYTES }, (_, at) => view.getFloat32(at * BYTES, true))
}
