/**
 * Text as audible tones and back: one tone of 24 ms for each half of a byte, in MP3, WAV or bare samples. No speech, but real
 * audio that any player plays, from which the text is recovered.
 */

const SAMPLE_RATE = 24_000
/** Of one tone: what one frame of such an MP3 holds. */
const SLOT_SAMPLES = 576
const SLOT_SECONDS = SLOT_SAMPLES / SAMPLE_RATE
const SLOTS_A_BYTE = 2

/** Before the text, so that other sounds are not taken for one. */
const MARK = [0x47, 0x48]
/** Silence at both ends, in tones. */
const SILENT_SLOTS = 4

/** Lines of the transform of MP3, 576 of them up to 12 kHz: from 344 to 1,594 Hz. */
const lineOf = (half: number): number => 16 + 4 * half
const hertzOf = (half: number): number => ((lineOf(half) + 0.5) * SAMPLE_RATE) / (2 * SLOT_SAMPLES)

/** The halves of the bytes; -1: silence. */
function slotsOf(text: string): number[] {
  const bytes = [...MARK, ...Buffer.from(text)]
  const silence = Array<number>(SILENT_SLOTS).fill(-1)
  return [...silence, ...bytes.flatMap((byte) => [byte >> 4, byte & 15]), ...silence]
}

/** The seconds that the text takes. */
export const secondsOfText = (text: string): number =>
  (2 * SILENT_SLOTS + (MARK.length + Buffer.byteLength(text)) * SLOTS_A_BYTE) * SLOT_SECONDS

/** When a byte of the text begins. */
export const startOfByte = (at: number): number => (SILENT_SLOTS + (MARK.length + at) * SLOTS_A_BYTE) * SLOT_SECONDS

export type ToneFormat = 'mp3' | 'wav' | 'pcm'

/** A quarter of a second and a half. */
const SLOTS_A_PART = 64

/** The audio in parts of 1.5 seconds. */
export function* audioOf(text: string, format: ToneFormat): Generator<Uint8Array> {
  const slots = slotsOf(text)
  if (format === 'wav') yield wavHeader(slots.length * SLOT_SAMPLES * BYTES_A_SAMPLE)
  const encode = format === 'mp3' ? frameOf : samplesOf
  for (let at = 0; at < slots.length; at += SLOTS_A_PART) {
    yield new Uint8Array(Buffer.concat(slots.slice(at, at + SLOTS_A_PART).map(encode)))
  }
}

/** The text of audio that `audioOf` has made as MP3 or WAV; undefined: it is other audio. */
export function textOf(bytes: Uint8Array): string | undefined {
  const slots = slotsInFrames(bytes) ?? slotsInSamples(bytes)
  if (slots === undefined) return undefined
  const start = slots.findIndex((half) => half !== -1)
  const found: number[] = []
  for (let at = start; at >= 0 && at + 1 < slots.length; at += SLOTS_A_BYTE) {
    const [high = -1, low = -1] = [slots[at], slots[at + 1]]
    if (high === -1 || low === -1) break
    found.push(high * 16 + low)
  }
  const isMarked = MARK.every((byte, at) => found[at] === byte)
  return isMarked ? Buffer.from(found.slice(MARK.length)).toString('utf8') : undefined
}

// MP3: MPEG-2 layer III, 24 kHz, one channel, 32 kbit/s (ISO/IEC 13818-3, 2.4.1; the tables are those of 11172-3, annex B).

const FRAME_HEADER = [0xff, 0xf3, 0x44, 0xc0]
const FRAME_BYTES = 96
/** Of the side information: 9 bits before the granule; then part2_3_length, big_values, global_gain and the rest. */
const LENGTH_AT = 9
const BIG_VALUES_AT = LENGTH_AT + 12
const GAIN_AT = BIG_VALUES_AT + 9
const TABLES_AT = GAIN_AT + 8 + 9 + 1
const SIDE_BYTES = 9
/** Loud enough to be heard, and far below full scale. */
const GLOBAL_GAIN = 198
/** The Huffman table for values up to 1: `1` is the pair 0 0, `01` 1 0, and `001` 0 1; then the signs. */
const TABLE = 1

function frameOf(half: number): Buffer {
  const frame = Buffer.alloc(FRAME_BYTES)
  frame.set(FRAME_HEADER)
  if (half === -1) return frame
  const side = new Bits(frame.subarray(FRAME_HEADER.length))
  const line = lineOf(half)
  const pairs = Math.floor(line / 2)
  const isSecond = line % 2 === 1
  const length = pairs + (isSecond ? 4 : 3)
  side.write(LENGTH_AT, 12, length)
  side.write(BIG_VALUES_AT, 9, pairs + 1)
  side.write(GAIN_AT, 8, GLOBAL_GAIN)
  for (let region = 0; region < 3; region++) side.write(TABLES_AT + 5 * region, 5, TABLE)
  const main = 8 * SIDE_BYTES
  for (let pair = 0; pair < pairs; pair++) side.write(main + pair, 1, 1)
  side.write(main + pairs, isSecond ? 3 : 2, 1)
  return frame
}

/** Bits from the highest of each byte on. */
class Bits {
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  write(at: number, count: number, value: number): void {
    for (let bit = 0; bit < count; bit++) {
      const place = at + bit
      if ((value >> (count - 1 - bit)) & 1)
        this.#bytes[place >> 3] = (this.#bytes[place >> 3] ?? 0) | (128 >> (place & 7))
    }
  }

  read(at: number, count: number): number {
    let value = 0
    for (let place = at; place < at + count; place++) {
      value = value * 2 + (((this.#bytes[place >> 3] ?? 0) >> (7 - (place & 7))) & 1)
    }
    return value
  }
}

/** Undefined where a frame is none of `frameOf`. */
function slotsInFrames(bytes: Uint8Array): number[] | undefined {
  const start = bytes[0] === 0x49 && bytes[1] === 0x44 && bytes[2] === 0x33 ? 10 + syncSafe(bytes.subarray(6, 10)) : 0
  const slots: number[] = []
  for (let at = start; at + FRAME_BYTES <= bytes.length; at += FRAME_BYTES) {
    const frame = bytes.subarray(at, at + FRAME_BYTES)
    if (!FRAME_HEADER.every((byte, index) => frame[index] === byte)) return undefined
    const side = new Bits(frame.subarray(FRAME_HEADER.length))
    const values = side.read(BIG_VALUES_AT, 9)
    if (values === 0) {
      slots.push(-1)
      continue
    }
    const code = 8 * SIDE_BYTES + values - 1
    const half = (2 * (values - 1) + (side.read(code, 2) === 1 ? 0 : 1) - lineOf(0)) / 4
    if (!Number.isInteger(half) || half < 0 || half > 15) return undefined
    slots.push(half)
  }
  return slots.length === 0 ? undefined : slots
}

/** The size of an ID3 tag, seven bits a byte. */
const syncSafe = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => sum * 128 + (byte & 127), 0)

// WAV: 16 bits a sample.

const BYTES_A_SAMPLE = 2
const LOUDNESS = 6_000
const WAV_HEADER_BYTES = 44

function wavHeader(bytes: number): Uint8Array {
  const header = Buffer.alloc(WAV_HEADER_BYTES)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(WAV_HEADER_BYTES - 8 + bytes, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLE_RATE, 24)
  header.writeUInt32LE(SAMPLE_RATE * BYTES_A_SAMPLE, 28)
  header.writeUInt16LE(BYTES_A_SAMPLE, 32)
  header.writeUInt16LE(8 * BYTES_A_SAMPLE, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(bytes, 40)
  return new Uint8Array(header)
}

const rendered = new Map<number, Buffer>()

/** Each tone swells and fades, so that nothing clicks. */
function samplesOf(half: number): Buffer {
  const known = rendered.get(half)
  if (known) return known
  const samples = Buffer.alloc(SLOT_SAMPLES * BYTES_A_SAMPLE)
  const step = half === -1 ? 0 : (2 * Math.PI * hertzOf(half)) / SAMPLE_RATE
  for (let at = 0; at < SLOT_SAMPLES; at++) {
    const swell = Math.sin((Math.PI * (at + 0.5)) / SLOT_SAMPLES)
    samples.writeInt16LE(Math.round(LOUDNESS * swell * Math.sin(step * at)), at * BYTES_A_SAMPLE)
  }
  rendered.set(half, samples)
  return samples
}

/** Quieter is silence. */
const LEAST_ENERGY = (SLOT_SAMPLES * LOUDNESS * 0.03) ** 2

/** Undefined where it is no WAV file of this rate with one channel. */
function slotsInSamples(bytes: Uint8Array): number[] | undefined {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (file.length < WAV_HEADER_BYTES || file.toString('latin1', 0, 4) !== 'RIFF') return undefined
  const isOurs = file.readUInt16LE(22) === 1 && file.readUInt32LE(24) === SAMPLE_RATE && file.readUInt16LE(34) === 16
  const data = file.indexOf('data', 12, 'latin1')
  if (!isOurs || data === -1) return undefined
  const slots: number[] = []
  const bytesASlot = SLOT_SAMPLES * BYTES_A_SAMPLE
  for (let at = data + 8; at + bytesASlot <= file.length; at += bytesASlot) slots.push(toneIn(file, at))
  return slots
}

/** The strongest of the tones, by Goertzel's algorithm. */
function toneIn(file: Buffer, from: number): number {
  let [best, most] = [-1, LEAST_ENERGY]
  for (let half = 0; half < 16; half++) {
    const factor = 2 * Math.cos((2 * Math.PI * hertzOf(half)) / SAMPLE_RATE)
    let [last, before] = [0, 0]
    for (let at = 0; at < SLOT_SAMPLES; at++) {
      const next = file.readInt16LE(from + at * BYTES_A_SAMPLE) + factor * last - before
      before = last
      last = next
    }
    const energy = last * last + before * before - factor * last * before
    if (energy > most) [best, most] = [half, energy]
  }
  return best
}
