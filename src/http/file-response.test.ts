import { describe, expect, test } from 'bun:test'
import { sniff } from '../kit/sniff.ts'
import { GatewayError } from '../spec/error.ts'
import { fileResponse, type Part, type ServedFile } from './file-response.ts'

const TEXT = '0123456789'
const file = (more: Partial<ServedFile> = {}): ServedFile => ({
  content_type: 'video/mp4',
  bytes: TEXT.length,
  version: 'v1',
  body: (part?: Part) => new Blob([part ? TEXT.slice(part.first, part.last + 1) : TEXT]).stream(),
  ...more,
})

const ask = (
  headers: Record<string, string> = {},
  { method = 'GET', ...more }: Partial<ServedFile & { method: string }> = {},
) =>
  fileResponse(new Request('http://gatehouse.test/', { method, headers }), file(more), {
    filename: 'a.mp4',
    cache_control: 'private, max-age=60',
  })

test('a whole file has its type, its length, and announces range requests', async () => {
  const answer = ask()
  expect(answer.status).toBe(200)
  expect(Object.fromEntries(answer.headers)).toEqual({
    etag: '"v1"',
    'cache-control': 'private, max-age=60',
    'accept-ranges': 'bytes',
    'content-security-policy':
      "sandbox allow-same-origin; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
    'x-content-type-options': 'nosniff',
    'content-type': 'video/mp4',
    'content-disposition': 'inline; filename="a.mp4"',
    'content-length': '10',
  })
  expect(await answer.text()).toBe(TEXT)
})

test.each([
  ['bytes=0-0', '0', 'bytes 0-0/10'],
  ['bytes=0-9', TEXT, 'bytes 0-9/10'],
  ['bytes=3-5', '345', 'bytes 3-5/10'],
  ['bytes=9-9', '9', 'bytes 9-9/10'],
  ['bytes=7-', '789', 'bytes 7-9/10'],
  ['bytes=0-', TEXT, 'bytes 0-9/10'],
  ['bytes=8-99999999999999999999999', '89', 'bytes 8-9/10'],
  ['bytes=-1', '9', 'bytes 9-9/10'],
  ['bytes=-10', TEXT, 'bytes 0-9/10'],
  ['bytes=-11', TEXT, 'bytes 0-9/10'],
  ['BYTES = 1 - 2', '12', 'bytes 1-2/10'],
])('%s is the range %s', async (range, text, content_range) => {
  const answer = ask({ range })
  expect([answer.status, answer.headers.get('content-range')]).toEqual([206, content_range])
  expect(answer.headers.get('content-length')).toBe(String(text.length))
  expect(await answer.text()).toBe(text)
})

test.each(['bytes=10-', 'bytes=10-12', 'bytes=-0', `bytes=${'9'.repeat(400)}-`])('%s is not in the file', (range) => {
  const thrown = (() => {
    try {
      return ask({ range })
    } catch (error) {
      return error as GatewayError
    }
  })()
  expect(thrown).toBeInstanceOf(GatewayError)
  expect(thrown).toMatchObject({ code: 'range_not_satisfiable', detail: { bytes: 10 } })
})

test('an empty file has no ranges, but is served whole', async () => {
  const empty = { bytes: 0, body: () => new Blob([]).stream() }
  for (const range of ['bytes=0-', 'bytes=-5', 'bytes=0-0']) {
    expect(() => ask({ range }, empty)).toThrow('has 0 bytes')
  }
  expect(ask({}, empty).headers.get('content-length')).toBe('0')
})

test.each(['bytes=5-3', 'bytes=-', 'bytes=', 'bytes=a-b', 'bytes=0-1,4-5', 'lines=0-1', '0-1', 'bytes=--1', 'bytes=1'])(
  '%s is not understood, and the whole file is the answer',
  async (range) => {
    const answer = ask({ range })
    expect([answer.status, await answer.text()]).toEqual([200, TEXT])
  },
)

describe('conditions', () => {
  test('a range is served for the same version only, otherwise the whole file', () => {
    expect(ask({ range: 'bytes=0-1', 'if-range': '"v1"' }).status).toBe(206)
    for (const other of ['"v2"', 'W/"v1"', 'Wed, 21 Oct 2026 07:28:00 GMT']) {
      expect(ask({ range: 'bytes=0-1', 'if-range': other }).status).toBe(200)
      expect(ask({ range: 'bytes=99-', 'if-range': other }).status).toBe(200)
    }
  })

  test('a file that the client has already is not sent again', () => {
    for (const known of ['"v1"', 'W/"v1"', '"v0", "v1"', '*']) {
      const answer = ask({ 'if-none-match': known, range: 'bytes=0-1' })
      expect([answer.status, answer.body]).toEqual([304, null])
      expect(answer.headers.get('etag')).toBe('"v1"')
      expect(answer.headers.get('cache-control')).toBe('private, max-age=60')
      expect(answer.headers.get('content-security-policy')).toStartWith("sandbox allow-same-origin; default-src 'none'")
    }
    expect(ask({ 'if-none-match': '"v2"' }).status).toBe(200)
  })
})

test('HEAD describes the whole file, opens nothing and ignores ranges', () => {
  const never = () => {
    throw new Error('opened')
  }
  const answer = ask({ range: 'bytes=0-1' }, { method: 'HEAD', body: never })
  expect([answer.status, answer.body, answer.headers.get('content-length')]).toEqual([200, null, '10'])
})

test('a file that a browser could execute is downloaded, not displayed', () => {
  for (const content_type of [
    'text/html',
    'image/svg+xml',
    'application/octet-stream',
    'application/xhtml+xml',
    'application/pdf',
    'video/mp4, text/html',
    'video/mp4,text/html',
    'text/html, video/mp4',
    'video/x-unknown',
    'video/mp4\ttext/html',
    '',
  ]) {
    const { headers } = ask({}, { content_type })
    expect(headers.get('content-disposition')).toBe('attachment; filename="a.mp4"')
    expect(headers.get('content-type')).toBe('application/octet-stream')
    expect(headers.get('content-security-policy')).toStartWith("sandbox; default-src 'none'")
  }
  expect(ask({}, { content_type: 'model/obj' }).headers.get('content-type')).toBe('model/obj')
  expect(ask({}, { content_type: 'model/obj' }).headers.get('content-disposition')).toStartWith('attachment')
  for (const [content_type, type] of [
    ['video/webm', 'video/webm'],
    ['audio/mp4', 'audio/mp4'],
    ['image/png', 'image/png'],
    ['model/gltf-binary', 'model/gltf-binary'],
    ['Video/MP4; codecs=avc1', 'video/mp4'],
  ]) {
    const { headers } = ask({}, { content_type: content_type ?? '' })
    expect(headers.get('content-disposition')).toStartWith('inline')
    expect(headers.get('content-type')).toBe(type ?? '')
  }
})

test('a file name cannot add anything to its header', () => {
  for (const filename of ['a";x="b.mp4', 'a\r\nset-cookie: b=c', 'ä\u202e.mp4', '../a/b\\c.mp4', 'a b.mp4']) {
    const request = new Request('http://gatehouse.test/')
    const { headers } = fileResponse(request, file(), { filename, cache_control: 'private' })
    expect(headers.get('content-disposition')).toMatch(/^inline; filename="[\w.-]+"$/)
    expect(headers.get('set-cookie')).toBeNull()
  }
})

describe('a file of two formats', () => {
  const SCRIPT = '<script>alert(1)</script>'
  const POLYGLOTS: [name: string, text: string, served: string | undefined][] = [
    ['a GIF that is a script', `GIF89a/*\x01\x00*/=1;alert(1)//${SCRIPT}`, 'image/gif'],
    ['a JPEG with HTML in its comment', `\xff\xd8\xff\xfe\x00\x40${SCRIPT}`, 'image/jpeg'],
    ['a PNG with HTML behind its end', `\x89PNG\r\n\x1a\n${SCRIPT}`, 'image/png'],
    ['a WAV that is a script', `RIFF=1/*WAVE*/;alert(1)`, 'audio/wav'],
    ['an MP4 with HTML in its first box', `\x00\x00\x00\x40ftypisom${SCRIPT}`, 'video/mp4'],
    ['HTML with an image behind it', `<!--\x89PNG\r\n\x1a\n-->${SCRIPT}`, undefined],
    ['a PDF with a GIF head behind it', '%PDF-1.7 GIF89a', undefined],
    ['SVG', `<svg xmlns="http://www.w3.org/2000/svg">${SCRIPT}</svg>`, undefined],
  ]

  for (const [name, text, served] of POLYGLOTS) {
    test(`${name} is served as ${served ?? 'a download'}, without scripts and without another reading of its type`, () => {
      const sniffed = sniff(Buffer.from(text, 'latin1'))
      expect(sniffed).toBe(served as string)
      const { headers } = ask({}, { content_type: sniffed ?? 'text/html' })
      expect(headers.get('content-type')).toBe(served ?? 'application/octet-stream')
      expect(headers.get('content-disposition')).toStartWith(served ? 'inline;' : 'attachment;')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-security-policy')).toMatch(/^sandbox( allow-same-origin)?; default-src 'none';/)
      expect(headers.get('content-security-policy')).not.toMatch(/script|unsafe-eval/)
    })
  }
})
