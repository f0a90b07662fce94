/** How long audio lasts, by its frames or by its container. The work is bounded, whatever a file contains. */

/** `expected`: in seconds; `held`: what limits hold; `is_exact`: by what a decoder needs, so that no header can shorten it. */
type Duration = { expected: number; held: number; most: number; is_exact: boolean }

/** Speech in an MP3 of usual quality, in one of low quality, and in what codecs for telephones make. */
const USUAL_BYTES_A_SECOND = 8_000
const LOW_BYTES_A_SECOND = 2_000
const LEAST_BYTES_A_SECOND = 500
/** Of compressed audio: a header that names a shorter time is not believed. */
const MOST_COMPRESSED_BYTES_A_SECOND = 128_000
const DAY_SECONDS = 86_400

export function secondsOf({ bytes, content_type }: { bytes: Uint8Array; content_type: string }): Duration {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const rate = content_type === 'audio/wav' ? wavRate(bytes) : undefined
  if (rate !== undefined) return known(file.length / rate, true)
  const { seconds, rest } = framesOf(file)
  if (seconds > 0 && rest <= MOST_TAG_BYTES) return known(seconds, true)
  const named = CONTAINERS[content_type]?.(file) ?? 0
  if (named > 0 && named <= DAY_SECONDS) return known(Math.max(named, file.length / MOST_COMPRESSED_BYTES_A_SECOND))
  const [usual, low, least] = [USUAL_BYTES_A_SECOND, LOW_BYTES_A_SECOND, LEAST_BYTES_A_SECOND].map(
    (rate) => seconds + rest / rate,
  ) as [number, number, number]
  return { expected: usual, held: low, most: least, is_exact: false }
}

const known = (seconds: number, is_exact = false): Duration => ({
  expected: seconds,
  held: seconds,
  most: seconds,
  is_exact,
})

/** By the first bytes of WAV, MP3 or AAC; undefined: they do not tell. */
export function bytesASecond(head: Uint8Array): number | undefined {
  const file = Buffer.from(head.buffer, head.byteOffset, head.length)
  if (file.toString('latin1', 8, 12) === 'WAVE') return wavRate(head)
  const frame = mpegFrame(file, afterTag(file))
  return frame && frame.bytes / frame.seconds
}

type Frame = { bytes: number; seconds: number }

/** More than three hours of most codecs. */
const MOST_FRAMES = 500_000
/** What may follow the last frame, such as an ID3v1 tag. */
const MOST_TAG_BYTES = 1_024
const AMR = '#!AMR\n'

/** `rest`: the bytes after the last frame that was read. */
function framesOf(file: Buffer): { seconds: number; rest: number } {
  const isAmr = file.toString('latin1', 0, AMR.length) === AMR
  const read = isAmr ? amrFrame : mpegFrame
  let at = isAmr ? AMR.length : afterTag(file)
  let seconds = 0
  for (let frames = 0; frames < MOST_FRAMES; frames++) {
    const frame = read(file, at)
    if (!frame || at + frame.bytes > file.length) break
    seconds += frame.seconds
    at += frame.bytes
  }
  return { seconds, rest: seconds > 0 ? file.length - at : file.length }
}

/** Where the audio begins after an ID3v2 tag, whose size has seven bits a byte. */
function afterTag(file: Buffer): number {
  if (file.length < 10 || file.toString('latin1', 0, 3) !== 'ID3') return 0
  const size = [6, 7, 8, 9].reduce((size, at) => size * 128 + ((file[at] as number) & 0x7f), 0)
  return 10 + size + ((file[5] as number) & 0x10 ? 10 : 0)
}

const KILOBITS = {
  1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
}
const MPEG_RATES = [44_100, 48_000, 32_000]
const AAC_RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350]

/** Of layer III (ISO 11172-3, 13818-3), or of AAC in ADTS (ISO 13818-7). */
function mpegFrame(file: Buffer, at: number): Frame | undefined {
  if (at + 6 > file.length || file[at] !== 0xff || ((file[at + 1] as number) & 0xe0) !== 0xe0) return undefined
  const [second, third, fourth] = [file[at + 1], file[at + 2], file[at + 3]] as [number, number, number]
  const layer = (second >> 1) & 3
  if (layer === 0 && second >= 0xf0) {
    const bytes = ((fourth & 3) << 11) | ((file[at + 4] as number) << 3) | ((file[at + 5] as number) >> 5)
    const rate = AAC_RATES[(third >> 2) & 15]
    return rate === undefined || bytes < 7 ? undefined : { bytes, seconds: 1_024 / rate }
  }
  const version = (second >> 3) & 3 // 3: MPEG-1, 2: MPEG-2, 0: MPEG-2.5
  const [rate, kilobits] = [MPEG_RATES[(third >> 2) & 3], KILOBITS[version === 3 ? 1 : 2][third >> 4]]
  if (layer !== 1 || version === 1 || !rate || !kilobits) return undefined
  const hertz = rate / (version === 3 ? 1 : version === 2 ? 2 : 4)
  const samples = version === 3 ? 1_152 : 576
  return { bytes: Math.floor((samples * kilobits * 125) / hertz) + ((third >> 1) & 1), seconds: samples / hertz }
}

/** RFC 4867, section 5.3: bytes of a frame by its type. */
const AMR_BYTES = [13, 14, 16, 18, 20, 21, 27, 32, 6]

function amrFrame(file: Buffer, at: number): Frame | undefined {
  const type = at < file.length ? ((file[at] as number) >> 3) & 15 : 0
  return at < file.length ? { bytes: AMR_BYTES[type] ?? 1, seconds: 0.02 } : undefined
}

/** How long a file says that it lasts, by its content type; undefined: it does not. */
const CONTAINERS: Record<string, (file: Buffer) => number | undefined> = {
  'audio/ogg': oggSeconds,
  'audio/flac': flacSeconds,
  'audio/mp4': mp4Seconds,
  'video/mp4': mp4Seconds,
  'video/quicktime': mp4Seconds,
  'video/webm': webmSeconds,
  'video/x-matroska': webmSeconds,
}

const MOST_PAGE_BYTES = 65_307

/** RFC 3533: the last page has the number of samples so far; the rate is in the first packet (RFC 7845, section 5.1). */
function oggSeconds(file: Buffer): number | undefined {
  const packet = file.subarray(27 + (file[26] ?? 0))
  const last = file.subarray(-2 * MOST_PAGE_BYTES)
  const page = last.lastIndexOf('OggS')
  if (packet.length < 40 || page === -1 || page + 14 > last.length) return undefined
  const samples = Number(last.readBigInt64LE(page + 6))
  if (packet.toString('latin1', 0, 8) === 'OpusHead') return (samples - packet.readUInt16LE(10)) / 48_000
  if (packet.toString('latin1', 1, 7) === 'vorbis') return samples / packet.readUInt32LE(12)
  return packet.toString('latin1', 0, 5) === 'Speex' ? samples / packet.readUInt32LE(36) : undefined
}

/** RFC 9639, section 8.2. */
function flacSeconds(file: Buffer): number | undefined {
  if (file.length < 26) return undefined
  const rate = file.readUIntBE(18, 3) >> 4
  return ((file[21] as number) % 16) * (2 ** 32 / rate) + file.readUInt32BE(22) / rate
}

const MOST_BOXES = 1_000

/** ISO 14496-12, section 8.2.2. */
function mp4Seconds(file: Buffer): number | undefined {
  const movie = boxIn(file, 'moov')
  const header = movie && boxIn(movie, 'mvhd')
  if (!header || header.length < 32) return undefined
  if (header[0] === 1) return Number(header.readBigUInt64BE(24)) / header.readUInt32BE(20)
  const duration = header.readUInt32BE(16)
  return duration === 0xffff_ffff ? undefined : duration / header.readUInt32BE(12)
}

/** What is in the first box of this type. */
function boxIn(file: Buffer, type: string): Buffer | undefined {
  for (let at = 0, boxes = 0; at + 16 <= file.length && boxes < MOST_BOXES; boxes++) {
    const short = file.readUInt32BE(at)
    const head = short === 1 ? 16 : 8
    const size = short === 0 ? file.length - at : short === 1 ? Number(file.readBigUInt64BE(at + 8)) : short
    if (size < head) return undefined
    if (file.toString('latin1', at + 4, at + 8) === type) return file.subarray(at + head, at + size)
    at += size
  }
  return undefined
}

const WEBM_HEAD_BYTES = 4_096
const WEBM_TAIL_BYTES = 1024 * 1024

/** RFC 9559. What a browser records has no duration: then the time of its last cluster tells how dense the file is. */
function webmSeconds(file: Buffer): number | undefined {
  const head = file.subarray(0, WEBM_HEAD_BYTES)
  const scale = (numberOf(head, head.indexOf('2ad7b1', 'hex'), 3) ?? 1_000_000) / 1e9
  const duration = head.indexOf('4489', 'hex')
  if (duration !== -1 && duration + 11 <= head.length) {
    if (head[duration + 2] === 0x88) return head.readDoubleBE(duration + 3) * scale
    if (head[duration + 2] === 0x84) return head.readFloatBE(duration + 3) * scale
  }
  const before = Math.max(0, file.length - WEBM_TAIL_BYTES)
  const cluster = file.subarray(before).lastIndexOf('1f43b675', 'hex')
  if (cluster === -1) return undefined
  // Its size has as many bytes as the first one has leading zeros, and one more; the time is its first element.
  const at = before + cluster + 4
  const time = at + Math.clz32(file[at] ?? 0) - 23
  if (file[time] !== 0xe7) return undefined
  return ((numberOf(file, time, 1) ?? 0) * scale * file.length) / (before + cluster)
}

/** An unsigned number of at most six bytes, after an id of so many. */
function numberOf(file: Buffer, at: number, id_bytes: number): number | undefined {
  const length = (file[at + id_bytes] ?? 0) & 0x7f
  const value = at + id_bytes + 1
  if (at < 0 || length < 1 || length > 6 || value + length > file.length) return undefined
  return file.readUIntBE(value, length)
}

/** Microsoft, "Multimedia Programming Interface and Data Specifications 1.0": PCM, float, A-law, mu-law. */
const UNCOMPRESSED: ReadonlySet<number> = new Set([1, 3, 6, 7])
/** The laws have 8 bits a sample, whatever the header names. */
const LAWS: ReadonlySet<number> = new Set([6, 7])
/** `WAVEFORMATEXTENSIBLE` names the format by a GUID, which begins with one of those and ends with these bytes. */
const EXTENSIBLE = 0xfffe
const GUID_END = '000000001000800000aa00389b71'
/** The most that any recorder makes: 8 channels of 32 bits, 384,000 times a second. */
const MOST_BYTES_A_SECOND = 384_000 * 8 * 4
/** Before the format there may be some padding and descriptions. */
const MOST_CHUNKS = 16

/**
 * Bytes a second. By the fields that a decoder needs: the header names a rate too, which none reads, so that any number could
 * stand there.
 */
function wavRate(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 12, chunks = 0; at + 24 <= bytes.length && chunks < MOST_CHUNKS; chunks++) {
    const size = view.getUint32(at + 4, true)
    if (view.getUint32(at) === FMT) {
      const format = wavFormat(view, at + 8, size)
      if (format === undefined || !UNCOMPRESSED.has(format)) return undefined
      const channels = view.getUint16(at + 10, true)
      const bits = LAWS.has(format) ? 8 : view.getUint16(at + 22, true)
      const rate = (view.getUint32(at + 12, true) * channels * bits) / 8
      return rate > 0 && rate <= MOST_BYTES_A_SECOND ? rate : undefined
    }
    // Chunks begin at even places.
    at += 8 + size + (size % 2)
  }
  return undefined
}

/** Of the data of a `fmt ` chunk; undefined: none that is known. */
function wavFormat(view: DataView, at: number, size: number): number | undefined {
  const format = view.getUint16(at, true)
  if (format !== EXTENSIBLE) return format
  if (size < 40 || at + 40 > view.byteLength) return undefined
  const end = Buffer.from(view.buffer, view.byteOffset + at + 26, 14).toString('hex')
  return end === GUID_END ? view.getUint16(at + 24, true) : undefined
}

/** `fmt ` */
const FMT = 0x66_6d_74_20
