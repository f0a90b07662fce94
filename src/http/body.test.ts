import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import { readBytes, readJson } from './body.ts'

const clock = manualClock()
const limits = { max_bytes: 100, seconds: 60, clock }

function requestOf(body: string | Uint8Array | ReadableStream<Uint8Array>, headers: Record<string, string> = {}) {
  const init: RequestInit & { duplex?: 'half' } = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: body as BodyInit,
    duplex: 'half',
  }
  return new Request('http://gatehouse.test/', init)
}

const withLength = (text: string) => requestOf(text, { 'content-length': String(Buffer.byteLength(text)) })

async function codeOf(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown === undefined) return 'none'
  if (thrown instanceof GatewayError) return thrown.code
  throw thrown
}

/** A body that comes in pieces, without a length. */
const inPieces = (...pieces: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
      controller.close()
    },
  })

describe('a body', () => {
  test('is read as JSON, with a length or in pieces', async () => {
    expect(await readJson(withLength('{"a":"ü"}'), limits)).toEqual({ a: 'ü' })
    expect(await readJson(requestOf(inPieces('{"a"', ':1}')), limits)).toEqual({ a: 1 })
  })

  test.each([['with a length'], ['in pieces']])('%s is in memory once, with the margin around it', async (how) => {
    const piece = () => new Uint8Array(20_000).fill(7)
    const pieces = [piece(), piece()]
    const headers = how === 'in pieces' ? {} : { 'content-length': '40000' }
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const one of pieces) controller.enqueue(one)
        controller.close()
      },
    })
    const bytes = await readBytes(requestOf(body, headers), { ...limits, max_bytes: 40_000, margin: 100 })
    expect([bytes.length, bytes.byteOffset, bytes.buffer.byteLength]).toEqual([40_000, 100, 40_200])
    expect(bytes.every((byte) => byte === 7)).toBe(true)
    expect(pieces.map(({ length }) => length)).toEqual([0, 0])
  })

  test('may start with a byte order mark', async () => {
    expect(await readJson(withLength('\uFEFF{"a":1}'), limits)).toEqual({ a: 1 })
    expect(await readJson(requestOf(inPieces('\uFEFF{"a":1}')), limits)).toEqual({ a: 1 })
  })

  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/vnd.x+json',
  ]) {
    test(`may be called ${type}`, async () => {
      expect(await readJson(requestOf('{}', { 'content-type': type }), limits)).toEqual({})
    })
  }

  for (const type of ['text/plain', '', 'application/jsonp', 'multipart/form-data; boundary=x', 'application/xml']) {
    test(`may not be called "${type}"`, async () => {
      expect(await codeOf(readJson(requestOf('{}', { 'content-type': type }), limits))).toBe('unsupported_media_type')
    })
  }

  test('may not be compressed', async () => {
    expect(await codeOf(readJson(requestOf('{}', { 'content-encoding': 'gzip' }), limits))).toBe(
      'unsupported_media_type',
    )
    expect(await readJson(requestOf('{}', { 'content-encoding': 'identity' }), limits)).toEqual({})
  })

  test('may have exactly the size limit, and not one byte more', async () => {
    const full = `"${'x'.repeat(98)}"`
    for (const request of [withLength(full), requestOf(inPieces(full.slice(0, 50), full.slice(50)))]) {
      expect(await readJson(request, limits)).toBe('x'.repeat(98))
    }
    const over = `"${'x'.repeat(99)}"`
    for (const request of [withLength(over), requestOf(inPieces(over.slice(0, 50), over.slice(50)))]) {
      expect(await codeOf(readJson(request, limits))).toBe('request_too_large')
    }
  })

  test('counts as held: before it is read if its length is announced, and piece by piece if not', async () => {
    const counted = (most: number) => {
      const pieces: number[] = []
      const hold = (bytes: number) => {
        pieces.push(bytes)
        if (pieces.reduce((sum, one) => sum + one, 0) > most) throw new GatewayError('server_is_overloaded', 'Full.')
      }
      return { pieces, limits: { ...limits, holder: { hold } } }
    }
    const announced = counted(7)
    const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) })
    const reading = readJson(requestOf(silent, { 'content-length': '8' }), announced.limits)
    expect([await codeOf(reading), announced.pieces]).toEqual(['server_is_overloaded', [8]])
    const inTime = counted(8)
    expect(await readJson(requestOf(inPieces('"1234', '56"')), inTime.limits)).toBe('123456')
    const chunked = counted(7)
    const refused = codeOf(readJson(requestOf(inPieces('"1234', '56"')), chunked.limits))
    expect([await refused, chunked.pieces, inTime.pieces]).toEqual(['server_is_overloaded', [5, 3], [5, 3]])
  })

  test('is counted even if its content-length is wrong', async () => {
    const request = requestOf(inPieces(`"${'x'.repeat(200)}"`), { 'content-length': '50' })
    expect(await codeOf(readJson(request, limits))).toBe('request_too_large')
  })

  test('is rejected when it does not arrive in time', async () => {
    const request = requestOf(new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) }))
    const reading = codeOf(readJson(request, limits))
    clock.advance(60_000)
    expect(await reading).toBe('request_timeout')
    expect(clock.waiting()).toBe(0)
  })

  test.each(['', '   ', '{', '{"a":}', 'nope', '{"a":1}x', '\u0000'])(
    'that is not JSON is refused: %j',
    async (text) => {
      expect(await codeOf(readJson(requestOf(text), limits))).toBe('invalid_json')
    },
  )

  test('that is not JSON gets an error with the position, and with nothing else of its content', async () => {
    const reading = readJson(requestOf('{\n  "a": "my secret"\n  "b": 1}'), limits)
    expect(reading).rejects.toThrow('The body is not valid JSON: line 3, column 3: expected `,` or `}`, found `"`.')
  })

  test('that is not UTF-8 is rejected; the replacement character is accepted', async () => {
    for (const headers of [{ 'content-length': '4' }, {}]) {
      expect(await codeOf(readJson(requestOf(Uint8Array.of(34, 0xc3, 0x28, 34), headers), limits))).toBe('invalid_json')
    }
    expect(await readJson(withLength('"\uFFFD"'), limits)).toBe('\uFFFD')
  })

  const deep = (depth: number, more = '') => `${'['.repeat(depth)}${more}${']'.repeat(depth)}`
  const large = { ...limits, max_bytes: 1e7 }

  test('may be nested 256 levels deep and not deeper, whatever its size', async () => {
    const wide = Array.from({ length: 3000 }, () => '"["').join()
    for (const more of ['', wide]) {
      expect(await codeOf(readJson(withLength(deep(255, `[${more}]`)), large))).toBe('none')
      expect(await codeOf(readJson(withLength(deep(256, `[${more}]`)), large))).toBe('invalid_json')
    }
    expect(await codeOf(readJson(withLength(`{"a":${deep(256)}}`), large))).toBe('invalid_json')
  })

  test('nested a million levels deep is rejected without a crash', async () => {
    expect(await codeOf(readJson(withLength(deep(1_000_000)), large))).toBe('invalid_json')
    expect(await codeOf(readJson(withLength('['.repeat(1_000_000)), large))).toBe('invalid_json')
    expect(await codeOf(readJson(withLength('['.repeat(100_000)), large))).toBe('invalid_json')
  })
})
