/** The smallest files of their types whose structure is complete, for providers under test: no more than a check needs. */

/** Boxes `ftyp`, `moov` and `mdat`; no track. */
export const TINY_MP4 = new Uint8Array(
  Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41\0\0\0\x08moov\0\0\0\x08mdat', 'latin1'),
)

/** The header, and a scene without content. */
export const TINY_GLB = new Uint8Array(
  Buffer.from('glTF\x02\0\0\0\x30\0\0\0\x1c\0\0\0JSON{"asset":{"version":"2.0"}} ', 'latin1'),
)

/** One pixel. */
export const TINY_PNG_BASE64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const TINY_PNG = new Uint8Array(Buffer.from(TINY_PNG_BASE64, 'base64'))

/** Start, empty image data, end. */
export const TINY_JPEG = new Uint8Array([0xff, 0xd8, 0xff, 0xda, 0, 2, 0xff, 0xd9])
