/** Takes the time of writing out of an MP4, so that the same video is the same bytes. */

/** Boxes that only hold boxes, on the way to those below. */
const CONTAINERS = new Set(['moov', 'trak', 'mdia'])
/** Boxes that begin with version and flags, and then have two times: of creation and of the last change. */
const TIMED = new Set(['mvhd', 'tkhd', 'mdhd'])

/** Changes `file` in place and answers it. */
export function withoutTimes(file: Uint8Array): Uint8Array {
  clear(file, new DataView(file.buffer, file.byteOffset, file.byteLength))
  return file
}

function clear(file: Uint8Array, view: DataView): void {
  for (let at = 0; at + 8 <= view.byteLength; ) {
    const size = view.getUint32(at)
    const end = size >= 8 ? at + size : view.byteLength
    const kind = String.fromCharCode(...file.subarray(at + 4, at + 8))
    if (CONTAINERS.has(kind)) {
      clear(file.subarray(at + 8, end), new DataView(view.buffer, view.byteOffset + at + 8, end - at - 8))
    }
    // Version 1 has times of 64 bits.
    if (TIMED.has(kind)) file.fill(0, at + 12, at + 12 + (view.getUint8(at + 8) === 1 ? 16 : 8))
    // A size of 0 means to the end, 1 that a longer size follows: neither comes before the index here.
    at = end
  }
}
