import { describe, expect, test } from 'bun:test'
import { FORM_MARGIN, recordingOf, secondsOf } from './recording.ts'

/** Audio within the memory of a request. */
const received = (bytes: number[], margin = FORM_MARGIN) => {
  const memory = new Uint8Array(bytes.length + 2 * margin)
  memory.set(bytes, margin)
  return memory.subarray(margin, margin + bytes.length)
}
const recording = (bytes: Uint8Array<ArrayBuffer>, filename = 'a.mp3') =>
  recordingOf({ bytes, content_type: 'audio/mpeg', filename })
const fieldsOf = async ({ bytes, content_type }: { bytes: Uint8Array<ArrayBuffer>; content_type: string }) =>
  new Response(bytes, { headers: { 'content-type': content_type } }).formData()

describe('the form of a recording', () => {
  test('is written into the memory of the request', () => {
    const bytes = received([0xff, 0xf3, 1, 2])
    const form = recording(bytes).form([['model', 'm']])
    expect(form.bytes.buffer).toBe(bytes.buffer)
  })

  test('is the same for each target, however often it is written', async () => {
    const own = recording(received([0xff, 0xf3, 1, 2]))
    own.form([['model', 'a-long-name'.repeat(100)]])
    const form = await fieldsOf(
      own.form([
        ['model', 'm'],
        ['include[]', 'x'],
        ['include[]', 'y'],
      ]),
    )
    expect(form.getAll('include[]')).toEqual(['x', 'y'])
    expect(form.get('model')).toBe('m')
    const file = form.get('file') as File
    expect([file.name, [...(await file.bytes())]]).toEqual(['a.mp3', [0xff, 0xf3, 1, 2]])
  })

  test.each([0, 10, FORM_MARGIN])('holds large fields beside a margin of %d bytes', async (margin) => {
    const form = recording(received([0xff, 0xf3, 9], margin)).form([['prompt', 'x'.repeat(FORM_MARGIN)]])
    const parsed = await fieldsOf(form)
    expect(String(parsed.get('prompt')).length).toBe(FORM_MARGIN)
    expect([...(await (parsed.get('file') as File).bytes())]).toEqual([0xff, 0xf3, 9])
  })

  test('has no field or header that a name could add', async () => {
    const form = recording(received([0xff, 0xf3, 9]), 'a"\r\nx: y\r\n\r\n.mp3').form([['model', 'm']])
    const parsed = await fieldsOf(form)
    expect([...parsed.keys()]).toEqual(['file', 'model'])
  })
})

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

describe('how long audio lasts', () => {
  test('is exact for WAV, and an estimate below its most for what is compressed', () => {
    expect(durationOf(wav(32_000))).toEqual({ expected: 2, most: 2, is_exact: true })
    const { expected, most, is_exact } = secondsOf({ bytes: new Uint8Array(80_000), content_type: 'audio/mpeg' })
    expect([expected, most, is_exact]).toEqual([10, 80, false])
  })

  test('is exact where padding precedes the format', () => {
    expect(durationOf(wav(32_000, { before: 'JUNK\x05\0\0\0......' }))).toEqual({
      expected: 2,
      most: 2,
      is_exact: true,
    })
  })

  test('is not taken from a rate that only the header names, is impossible, or is of what is compressed', () => {
    expect(durationOf(wav(32_000, { rate: 0xffff_ffff }))).toMatchObject({ expected: 2, is_exact: true })
    for (const odd of [{ samples: 0xffff_ffff, rate: 1 }, { samples: 0 }, { format: 2 }]) {
      expect(durationOf(wav(32_000, odd))).toEqual({ expected: 4, most: 32, is_exact: false })
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
    for (const tag of [1, 3]) expect(durationOf(extensible(tag))).toEqual({ expected: 2, most: 2, is_exact: true })
    expect(durationOf(extensible(7))).toEqual({ expected: 4, most: 4, is_exact: true })
    for (const odd of [extensible(0x55), extensible(0xfffe), extensible(1, '00'.repeat(14)), extensible(1, '', 16)])
      expect(durationOf(odd).is_exact).toBe(false)
  })

  test('has 8 bits a sample by the laws, whatever the header names', () => {
    expect(durationOf(wav(32_000, { format: 6 }))).toEqual({ expected: 4, most: 4, is_exact: true })
  })

  test('is not taken from a header that is cut or has no rate', () => {
    const bytes = new Uint8Array(Buffer.concat([Buffer.from('RIFF....WAVEfmt '), Buffer.alloc(100)]))
    expect(secondsOf({ bytes, content_type: 'audio/wav' }).is_exact).toBe(false)
    expect(secondsOf({ bytes: bytes.slice(0, 20), content_type: 'audio/wav' }).is_exact).toBe(false)
  })
})
