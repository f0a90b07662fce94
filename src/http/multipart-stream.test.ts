import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import { streamForm } from './multipart-stream.ts'

const LIMITS = { max_bytes: 100_000, pause_seconds: 10, total_seconds: 60, clock: manualClock() }

/** A request whose body arrives in these pieces. */
function requestOf(pieces: (string | Uint8Array)[], headers: Record<string, string> = {}): Request {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === 'string' ? Buffer.from(piece) : piece)
      controller.close()
    },
  })
  return new Request('http://gatehouse.test', {
    method: 'POST',
    body,
    headers: { 'content-type': 'multipart/form-data; boundary=edge', ...headers },
  })
}

async function partsOf(request: Request, limits: Partial<typeof LIMITS> = {}) {
  const parts: { name: string; filename: string | undefined; content_type: string; text: string }[] = []
  for await (const { bytes, ...headers } of streamForm(request, { ...LIMITS, ...limits })) {
    let text = ''
    for await (const piece of bytes()) text += Buffer.from(piece).toString('latin1')
    parts.push({ ...headers, text })
  }
  return parts
}

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
    return 'nothing was thrown'
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : String(thrown)
  }
}

const FORM =
  '--edge\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n' +
  '--edge\r\ncontent-disposition: form-data; name="file"; filename="a\\"b.txt"\r\ncontent-type: text/plain\r\n\r\n' +
  'one\r\n--edg\r\n\r\n--edge-not\r\r\n--edge\r\n' +
  'content-disposition: form-data; name="empty"; filename=""\r\n\r\n\r\n--edge--\r\nand more'
const [HEAD = '', TAIL = ''] = FORM.split('--edge-not')
/** The boundary with anything behind it would end the part. */
const FIXED = `${HEAD}--edgy-not${TAIL}`
const PARTS = [
  { name: 'purpose', filename: undefined, content_type: '', text: 'batch' },
  { name: 'file', filename: 'a"b.txt', content_type: 'text/plain', text: 'one\r\n--edg\r\n\r\n--edgy-not\r' },
  { name: 'empty', filename: '', content_type: '', text: '' },
]

describe('a form that is read while it arrives', () => {
  test('has the same parts wherever it is cut', async () => {
    for (let at = 0; at <= FIXED.length; at++)
      expect([at, await partsOf(requestOf([FIXED.slice(0, at), FIXED.slice(at)]))]).toEqual([at, PARTS])
    expect(await partsOf(requestOf([...FIXED]))).toEqual(PARTS)
  })

  test('skips the parts that nobody reads', async () => {
    const names: string[] = []
    for await (const { name } of streamForm(requestOf([FIXED]), LIMITS)) names.push(name)
    expect(names).toEqual(['purpose', 'file', 'empty'])
  })

  test('is refused where it ends early, at any place', async () => {
    const end = FIXED.indexOf('--edge--') + '--edge--\r\n'.length
    for (let at = 0; at < end; at++)
      expect([at, await codeOf(partsOf(requestOf([FIXED.slice(0, at)])))]).toEqual([at, 'invalid_value'])
  })

  test.each([
    ['', 'invalid_value'],
    ['no form', 'invalid_value'],
    ['x'.repeat(5_000) + FIXED, 'invalid_value'],
    ['--edge\r\n\r\n\r\ntext\r\n--edge--\r\n', 'invalid_value'],
    ['--edge\r\ncontent-disposition: attachment; name="a"\r\n\r\ntext\r\n--edge--\r\n', 'invalid_value'],
    [`--edge\r\nx: ${'y'.repeat(9_000)}\r\n\r\ntext\r\n--edge--\r\n`, 'invalid_value'],
    [
      `--edge\r\ncontent-disposition: form-data; name="a"\r\n\r\n${'y'.repeat(100_000)}\r\n--edge--\r\n`,
      'request_too_large',
    ],
    [`${'--edge\r\ncontent-disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(1_001)}--edge--\r\n`, 'invalid_value'],
  ])('is refused: %p', async (body, code) => {
    expect(await codeOf(partsOf(requestOf([body])))).toBe(code)
  })

  test('is bounded in bytes, on both sides of the limit', async () => {
    expect(await partsOf(requestOf([FIXED]), { max_bytes: FIXED.length })).toEqual(PARTS)
    expect(await codeOf(partsOf(requestOf([FIXED]), { max_bytes: FIXED.length - 1 }))).toBe('request_too_large')
    const announced = requestOf([FIXED], { 'content-length': '100001' })
    expect(await codeOf(partsOf(announced))).toBe('request_too_large')
  })

  test('is refused by its headers', async () => {
    for (const headers of [{ 'content-type': 'application/json' }, { 'content-encoding': 'gzip' }] as Record<
      string,
      string
    >[])
      expect(await codeOf(partsOf(requestOf([FIXED], headers)))).toBe('unsupported_media_type')
    expect(await codeOf(partsOf(requestOf([FIXED], { 'content-type': 'multipart/form-data' })))).toBe('invalid_value')
  })

  test('is refused where nothing more arrives, and where it takes too long', async () => {
    for (const [seconds, pause_seconds] of [
      [10, 10],
      [60, 600],
    ] as const) {
      const clock = manualClock()
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(Buffer.from('--edge\r\n')),
      })
      const headers = { 'content-type': 'multipart/form-data; boundary=edge' }
      const request = new Request('http://gatehouse.test', { method: 'POST', body, headers })
      const code = codeOf(partsOf(request, { clock, pause_seconds }))
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      clock.advance(seconds * 1_000)
      expect(await code).toBe('request_timeout')
    }
  })
})
