/** Finds out whether a zstd stream is complete, since the runtime takes the beginning of a frame for the whole (RFC 8878). */

const MAGIC = 0xfd2fb528
const SKIPPABLE = 0x184d2a5
/** Sizes of the frame header's fields by their flags (section 3.1.1.1). */
const DICTIONARY_BYTES = [0, 1, 2, 4]
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]

type State = 'magic' | 'header' | 'block' | 'skippable' | 'checksum'

/** Reads the headers of frames and blocks; contents are skipped. */
export function createZstdFrames() {
  let state: State = 'magic'
  /** Bytes of contents to skip before the next header. */
  let skip = 0
  let header: number[] = []
  let hasChecksum = false

  /** How many bytes the next header has. */
  const needed = (): number => (state === 'header' ? 1 : state === 'block' ? 3 : 4)
  const little = (): number => header.reduce((sum, byte, at) => sum + byte * 256 ** at, 0)

  function endOfHeader(): void {
    const value = little()
    header = []
    if (state === 'magic') {
      state = value === MAGIC ? 'header' : Math.floor(value / 16) === SKIPPABLE ? 'skippable' : 'magic'
    } else if (state === 'skippable') {
      skip = value
      state = 'magic'
    } else if (state === 'header') {
      const isSingle = (value & 0x20) !== 0
      const size = CONTENT_SIZE_BYTES[value >> 6] ?? 0
      hasChecksum = (value & 4) !== 0
      skip = (isSingle ? 0 : 1) + (DICTIONARY_BYTES[value & 3] ?? 0) + (size === 0 && isSingle ? 1 : size)
      state = 'block'
    } else if (state === 'block') {
      const isRunLength = ((value >> 1) & 3) === 1
      skip = isRunLength ? 1 : value >> 3
      if ((value & 1) === 1) state = hasChecksum ? 'checksum' : 'magic'
    } else {
      state = 'magic'
    }
  }

  return {
    push(bytes: Uint8Array): void {
      for (let at = 0; at < bytes.length; ) {
        if (skip > 0) {
          const skipped = Math.min(skip, bytes.length - at)
          skip -= skipped
          at += skipped
          continue
        }
        header.push(bytes[at] ?? 0)
        at++
        if (header.length === needed()) endOfHeader()
      }
    },
    /** Whether the bytes so far end with a whole frame. */
    isWhole: (): boolean => state === 'magic' && skip === 0 && header.length === 0,
  }
}
