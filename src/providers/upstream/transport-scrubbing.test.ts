import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { createScrubbingTransport, createTransport } from './transport.ts'

const KEY = 'sk-canary-0123456789'

/** The response to one request with the key: these pieces, one by one. */
async function responseOf(pieces: readonly string[], headers: Record<string, string> = {}) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Buffer.from(piece))
      controller.close()
    },
  })
  const transport = createTransport({ clock, log, fetch: async () => new Response(body, { headers }) })
  return await createScrubbingTransport(transport, [KEY]).send(requestTo('http://127.0.0.1/v1'))
}

const requestTo = (url: string) => ({
  provider: 'vendor',
  url,
  method: 'GET' as const,
  headers: { authorization: `Bearer ${KEY}` },
  signal: new AbortController().signal,
  timeouts: { connect_seconds: 10, first_byte_seconds: 10, idle_seconds: 10, total_seconds: 10 },
  stream: true,
})

describe('a key that is sent and not configured', () => {
  it('is removed from responses, however many other credentials were sent meanwhile', async () => {
    const clock = manualClock()
    const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
    const transport = createTransport({ clock, log, fetch: async () => new Response(`Bad key: ${KEY}`) })
    const { send } = createScrubbingTransport(transport, [])
    for (let number = 0; number < 40; number++) {
      const response = await send(requestTo(`http://127.0.0.1/v1?signature=signature-${number}`))
      expect(await response.text()).toBe('Bad key: [redacted]')
    }
  })
})

const pieces = ['{"text": "one', ` ${KEY.slice(0, 9)}`, `${KEY.slice(9)} two"}`]
const clean = '{"text": "one [redacted] two"}'

describe('a response whose first byte was looked at', () => {
  it('is read as a text with these bytes', async () => {
    for (const headers of [{}, { 'content-length': `${pieces.join('').length}` }]) {
      const response = await responseOf(pieces, headers)
      expect(await response.firstByte()).toBe('{'.charCodeAt(0))
      expect(await response.text()).toBe(clean)
    }
  })

  it('is read in pieces with these bytes', async () => {
    const response = await responseOf(pieces)
    await response.firstByte()
    await response.firstByte()
    let text = ''
    for (let bytes = await response.read(); bytes; bytes = await response.read()) text += Buffer.from(bytes)
    expect(text).toBe(clean)
  })

  it('is clean wherever a key is cut, and only the line of the key is joined', async () => {
    for (let cut = 1; cut < KEY.length; cut++) {
      for (const end of ['\n', '\n\ndata: more\n\n', ` and ${KEY}\n\ndata: ${KEY}\n`, '']) {
        const after = `${KEY.slice(cut)} two${end}`
        const response = await responseOf([`one ${KEY.slice(0, cut)}`, after, 'three'])
        const read: string[] = []
        for (let bytes = await response.read(); bytes; bytes = await response.read()) read.push(`${Buffer.from(bytes)}`)
        expect(read.join('')).toBe(`one [redacted] two${end.replaceAll(KEY, '[redacted]')}three`)
        const line = end.includes('\n') ? end.slice(0, end.indexOf('\n') + 1) : end
        expect(read[1]).toBe(`[redacted] two${line.replaceAll(KEY, '[redacted]')}`)
      }
    }
  })

  it('gives nothing more once it was dropped', async () => {
    const response = await responseOf([`one ${KEY.slice(0, 6)}`, `${KEY.slice(6)} two\nthree\n`])
    await response.read()
    await response.read()
    response.drop()
    expect(await response.read()).toBeUndefined()
  })

  it('is read as an excerpt with these bytes', async () => {
    const response = await responseOf(pieces)
    await response.firstByte()
    expect(await response.excerpt()).toBe(clean)
  })

  it('is cut as an excerpt without the beginning of a secret', async () => {
    const filler = 'x'.repeat(64 * 1024 - 9)
    for (const parts of [[`${filler}${KEY} and more`], [`${filler}${KEY.slice(0, 9)}`, `${KEY.slice(9)} and more`]]) {
      const response = await responseOf(parts)
      expect((await response.excerpt()).replace(/^x+/, '')).toBe('[redacted')
    }
  })

  it('tells the first byte that is no white space, and none where the first bytes are white space', async () => {
    const bodies: [string[], string | undefined][] = [
      [[' \r\n\t{'], '{'],
      [[`${KEY} two`], KEY[0]],
      [[' \n', '{'], undefined],
      [[], undefined],
    ]
    for (const [parts, sign] of bodies) expect(await (await responseOf(parts)).firstByte()).toBe(sign?.charCodeAt(0))
  })
})
