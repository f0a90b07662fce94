import { describe, expect, test } from 'bun:test'
import { randomFrom } from '../../../test/kit/kill-run.ts'
import { bytesASecond, secondsOf } from './duration.ts'
import { recordingOf } from './recording.ts'

/** A WAV file: 16 bits a sample, one channel. `rate`: bytes a second, as the header names them beside. */
function wav(bytes: number, { samples = 8_000, rate = 16_000, format = 1, before = '' } = {}) {
  const header = Buffer.alloc(32)
  header.write('fmt ', 0)
  header.writeUInt32LE(16, 4)
  header.writeUInt16LE(format, 8)
  header.writeUInt16LE(1, 10)
  header.writeUInt32LE(samples, 12)
  header.writeUInt32LE(rate, 16)
  header.writeUInt16LE(2, 20)
  header.writeUInt16LE(16, 22)
  header.write('data', 24)
  const head = Buffer.concat([Buffer.from(`RIFF....WAVE${before}`, 'latin1'), header])
  return new Uint8Array(Buffer.concat([head, Buffer.alloc(bytes - head.length)]))
}
const durationOf = (bytes: Uint8Array<ArrayBuffer>) => secondsOf(recordingOf({ bytes, content_type: '', filename: '' }))

const lasting = (seconds: number) => ({ expected: seconds, held: seconds, most: seconds })

describe('how long audio lasts', () => {
  test('is exact for WAV, and an estimate below its most for what is compressed', () => {
    expect(durationOf(wav(32_000))).toEqual({ ...lasting(2), is_exact: true })
    const unknown = secondsOf({ bytes: new Uint8Array(80_000), content_type: 'audio/mpeg' })
    expect(unknown).toEqual({ expected: 10, held: 40, most: 160, is_exact: false })
  })

  test('is exact where padding precedes the format', () => {
    expect(durationOf(wav(32_000, { before: 'JUNK\x05\0\0\0......' }))).toEqual({ ...lasting(2), is_exact: true })
  })

  test('is not taken from a rate that only the header names, is impossible, or is of what is compressed', () => {
    expect(durationOf(wav(32_000, { rate: 0xffff_ffff }))).toMatchObject({ expected: 2, is_exact: true })
    for (const odd of [{ samples: 0xffff_ffff, rate: 1 }, { samples: 0 }, { format: 2 }]) {
      expect(durationOf(wav(32_000, odd))).toEqual({ expected: 4, held: 16, most: 64, is_exact: false })
    }
  })

  test('is exact for the extensible form only where its GUID is that of uncompressed audio', () => {
    const extensible = (tag: number, end = '000000001000800000aa00389b71', size = 40) => {
      const header = Buffer.alloc(56)
      header.write('fmt ', 0)
      header.writeUInt32LE(size, 4)
      for (const [at, value] of [8, 10, 20, 22, 24].map((at, index) => [at, [0xfffe, 1, 2, 16, 22][index]] as const))
        header.writeUInt16LE(value as number, at)
      header.writeUInt32LE(8_000, 12)
      header.writeUInt16LE(tag, 32)
      header.write(end, 34, 'hex')
      header.write('data', 48)
      const head = Buffer.concat([Buffer.from('RIFF....WAVE', 'latin1'), header])
      return new Uint8Array(Buffer.concat([head, Buffer.alloc(32_000 - head.length)]))
    }
    for (const tag of [1, 3]) expect(durationOf(extensible(tag))).toEqual({ ...lasting(2), is_exact: true })
    expect(durationOf(extensible(7))).toEqual({ ...lasting(4), is_exact: true })
    for (const odd of [extensible(0x55), extensible(0xfffe), extensible(1, '00'.repeat(14)), extensible(1, '', 16)])
      expect(durationOf(odd).is_exact).toBe(false)
  })

  test('has 8 bits a sample by the laws, whatever the header names', () => {
    expect(durationOf(wav(32_000, { format: 6 }))).toEqual({ ...lasting(4), is_exact: true })
  })

  test('is not taken from a header that is cut or has no rate', () => {
    const bytes = new Uint8Array(Buffer.concat([Buffer.from('RIFF....WAVEfmt '), Buffer.alloc(100)]))
    expect(secondsOf({ bytes, content_type: 'audio/wav' }).is_exact).toBe(false)
    expect(secondsOf({ bytes: bytes.slice(0, 20), content_type: 'audio/wav' }).is_exact).toBe(false)
  })
})

type Bytes = Uint8Array<ArrayBuffer>
const joined = (...parts: (Uint8Array | string)[]): Bytes =>
  new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part))))
const repeated = (frame: Buffer, times: number) => Buffer.concat(Array.from({ length: times }, () => frame))
const padded = (bytes: number, ...head: (Buffer | string)[]) => joined(...head, Buffer.alloc(bytes))
const number = (value: number | bigint, bytes: number, order: 'BE' | 'LE' = 'BE') => {
  const written = Buffer.alloc(8)
  if (order === 'LE') written.writeBigUInt64LE(BigInt(value))
  else written.writeBigUInt64BE(BigInt(value))
  return order === 'LE' ? written.subarray(0, bytes) : written.subarray(8 - bytes)
}

/** MPEG-2, layer III, 8 kbit/s, 16 kHz: 36 bytes in 36 ms, the least that layer III has. */
const MP3_FRAME = Buffer.concat([Buffer.from('fff31804', 'hex'), Buffer.alloc(32)])
/** AAC in ADTS at 16 kHz: 64 bytes in 64 ms. */
const ADTS_FRAME = Buffer.concat([Buffer.from('fff16040081ffc', 'hex'), Buffer.alloc(57)])
const AMR_FRAME = Buffer.concat([Buffer.from([0x04]), Buffer.alloc(12)])

describe('how long frames last', () => {
  test('is exact for MP3, behind a tag and before another one', () => {
    const tag = joined('ID3\x04\0\0\0\0\x01\x00', Buffer.alloc(128))
    const file = joined(tag, repeated(MP3_FRAME, 1_000), 'TAG', Buffer.alloc(125))
    const found = durationOf(file)
    expect(found.is_exact).toBe(true)
    expect(found.expected).toBeCloseTo(36, 6)
    expect([found.held, found.most]).toEqual([found.expected, found.expected])
  })

  test('is exact for AAC, and for AMR, whose 4.75 kbit/s are less than any estimate', () => {
    expect(durationOf(joined(repeated(ADTS_FRAME, 500)))).toMatchObject({ held: expect.closeTo(32, 6), is_exact: true })
    expect(durationOf(joined('#!AMR\n', repeated(AMR_FRAME, 500)))).toMatchObject({
      ...{ held: expect.closeTo(10, 6), is_exact: true },
    })
  })

  test('is an estimate for the bytes after the last frame that can be read', () => {
    const found = durationOf(joined(repeated(MP3_FRAME, 100), Buffer.alloc(80_000)))
    expect(found).toEqual({ expected: expect.closeTo(13.6, 6), held: 43.6, most: 163.6, is_exact: false })
  })

  test('is read in bounded steps', () => {
    const found = durationOf(joined('#!AMR\n', Buffer.alloc(600_000, 0x7c)))
    expect(found.is_exact).toBe(false)
    expect(found.expected).toBeCloseTo(10_000 + 100_000 / 8_000, 3)
  })

  test('gives the bytes in a second of speech', () => {
    expect(bytesASecond(joined(MP3_FRAME))).toBeCloseTo(1_000, 6)
    expect(bytesASecond(wav(100))).toBe(16_000)
    expect(bytesASecond(new Uint8Array([1, 2]))).toBeUndefined()
  })
})

const ogg = (granule: number, packet: Buffer | string, bytes = 3_000) =>
  padded(
    bytes,
    'OggS\0\x02',
    Buffer.alloc(20),
    '\x01\x13',
    packet,
    Buffer.alloc(60),
    'OggS\0\x04',
    number(granule, 8, 'LE'),
  )
const opus = Buffer.concat([Buffer.from('OpusHead\x01\x01'), number(312, 2, 'LE'), Buffer.alloc(30)])
const vorbis = Buffer.concat([Buffer.from('\x01vorbis\0\0\0\0\x01'), number(8_000, 4, 'LE'), Buffer.alloc(30)])
const box = (type: string, ...parts: Buffer[]) => {
  const data = Buffer.concat(parts)
  return Buffer.concat([number(data.length + 8, 4), Buffer.from(type), data])
}
const mp4 = (header: Buffer, brand = 'M4A ') =>
  joined(
    box('ftyp', Buffer.from(`${brand}\0\0\0\0`)),
    box('mdat', Buffer.alloc(3_000)),
    box('moov', box('mvhd', header)),
  )
const mvhd = (duration: number) =>
  Buffer.concat([Buffer.alloc(12), number(1_000, 4), number(duration, 4), Buffer.alloc(20)])
const longMvhd = Buffer.concat([
  Buffer.from([1]),
  Buffer.alloc(19),
  number(1_000, 4),
  number(6_000, 8),
  Buffer.alloc(20),
])
const flac = (samples: number) =>
  padded(3_000, 'fLaC\0\0\0\x22', Buffer.alloc(10), number((BigInt(16_000) << 44n) | BigInt(samples), 8))
const WEBM = '\x1aE\xdf\xa3\x87\x42\x82\x84webm'
const seconds = (value: number) => {
  const written = Buffer.alloc(8)
  written.writeDoubleBE(value)
  return written
}
const clusterAt = (ms: number) => Buffer.concat([Buffer.from('1f43b67501ffffffffffffffe782', 'hex'), number(ms, 2)])

describe('how long a container says that it lasts', () => {
  test.each<[string, Bytes]>([
    ['Opus in Ogg', ogg(6 * 48_000 + 312, opus)],
    ['Vorbis in Ogg', ogg(6 * 8_000, vorbis)],
    ['MP4', mp4(mvhd(6_000))],
    ['MP4 with 64 bits', mp4(longMvhd, 'isom')],
    ['FLAC', flac(6 * 16_000)],
    ['WebM', padded(3_000, WEBM, Buffer.from('2ad7b1830f4240448988', 'hex'), seconds(6_000))],
    ['WebM of a browser', joined(WEBM, clusterAt(0), Buffer.alloc(2_000 - 31), clusterAt(4_000), Buffer.alloc(984))],
  ])('is held for %s, more than by its size, and is not exact', (_, file) => {
    const { expected, held, most, is_exact } = durationOf(file)
    expect(held).toBeCloseTo(6, 1)
    expect([expected, most, is_exact]).toEqual([held, held, false])
  })

  test.each<[string, Bytes]>([
    ['no end', ogg(0, opus)],
    ['another codec', ogg(6 * 48_000, 'Other')],
    ['an unknown end', mp4(mvhd(0xffff_ffff))],
    ['no time scale', mp4(Buffer.alloc(40))],
    ['a box without a size', joined(box('ftyp', Buffer.from('M4A \0\0\0\0')), Buffer.alloc(3_000))],
    ['more than a day', flac(2 ** 36 - 1)],
    ['one cluster', padded(3_000, WEBM, clusterAt(0))],
  ])('is estimated by the size for one with %s', (_, file) => {
    const { expected, held, most } = durationOf(file)
    expect([expected, held, most]).toEqual([8_000, 2_000, 500].map((rate) => file.length / rate) as never)
  })

  test('is not believed where no compressed audio is so dense', () => {
    expect(durationOf(joined(flac(1), Buffer.alloc(1_280_000))).held).toBeGreaterThan(10)
  })

  test('is read from any bytes', () => {
    const random = randomFrom(7)
    const files = [ogg(48_000, opus), mp4(mvhd(9)), mp4(longMvhd), flac(9), padded(99, WEBM, clusterAt(0)), wav(99)]
    for (let at = 0; at < 3_000; at++) {
      const file = files[at % files.length]?.slice() as Bytes
      for (let byte = 12; byte < file.length; byte += 1 + Math.floor(random() * 40)) file[byte] = random() * 256
      const { expected, held, most } = durationOf(file.subarray(0, 12 + Math.floor(random() * file.length)))
      expect([expected, held, most].every((one) => one > 0 && one < 1e6)).toBe(true)
    }
  })
})
