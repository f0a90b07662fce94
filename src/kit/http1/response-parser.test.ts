import { describe, expect, it } from 'bun:test'
import { RESPONSES } from '../../../test/kit/http1-responses.ts'
import {
  createResponseParser,
  Http1Error,
  MAX_CHUNK_LINE_BYTES,
  MAX_HEAD_BYTES,
  MAX_HEADERS,
  MAX_INTERIM,
} from './response-parser.ts'

type Parsed = {
  status?: number
  headers?: [string, string][]
  is_reusable?: boolean
  body: string
  ended: boolean
  error?: string
}

/** Parses the text in these pieces, then closes the connection. */
function parse(text: string | string[], { method = 'GET', close = true } = {}): Parsed {
  const parsed: Parsed = { body: '', ended: false }
  const parser = createResponseParser(
    { method },
    {
      head: (head) => void Object.assign(parsed, head),
      body(bytes) {
        parsed.body += Buffer.from(bytes).toString('latin1')
      },
      end() {
        parsed.ended = true
      },
    },
  )
  try {
    for (const piece of typeof text === 'string' ? [text] : text) parser.push(Buffer.from(piece, 'latin1'))
    if (close && !parsed.ended) parser.close()
  } catch (error) {
    if (!(error instanceof Http1Error)) throw error
    parsed.error = error.code
  }
  return parsed
}

const ok = (headers: string, body = '') => `HTTP/1.1 200 OK\r\n${headers}\r\n${body}`

describe('a response', () => {
  it.each<[string, string, Partial<Parsed>, { method?: string }?]>([
    ['with a length', ok('content-length: 5\r\n', 'hello'), { body: 'hello', ended: true, is_reusable: true }],
    ['with a length of 0', ok('content-length: 0\r\n'), { body: '', ended: true, is_reusable: true }],
    [
      'in chunks',
      ok('transfer-encoding: chunked\r\n', '5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n'),
      { body: 'hello!', ended: true, is_reusable: true },
    ],
    [
      'in chunks, with extensions',
      ok('Transfer-Encoding: Chunked\r\n', '5;a="b";c\r\nhello\r\n0;x\r\n\r\n'),
      { body: 'hello', ended: true },
    ],
    [
      'in chunks, with white space after a size',
      ok('transfer-encoding: chunked\r\n', '5 \r\nhello\r\n0\r\n\r\n'),
      { body: 'hello' },
    ],
    [
      'in chunks, with trailers',
      ok('transfer-encoding: chunked\r\n', '1\r\na\r\n0\r\nx: y\r\nz: 1\r\n\r\n'),
      { body: 'a', ended: true },
    ],
    [
      'in chunks, with leading zeros',
      ok('transfer-encoding: chunked\r\n', '0005\r\nhello\r\n000\r\n\r\n'),
      { body: 'hello', ended: true },
    ],
    ['until the connection closes', ok('', 'hello'), { body: 'hello', ended: true, is_reusable: false }],
    ['without a reason', 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n', { status: 200, ended: true }],
    ['with an empty reason', 'HTTP/1.1 503 \r\ncontent-length: 0\r\n\r\n', { status: 503, ended: true }],
    ['with an unknown status', 'HTTP/1.1 799 Odd\r\ncontent-length: 0\r\n\r\n', { status: 799, ended: true }],
    ['to HEAD', ok('content-length: 5\r\n'), { body: '', ended: true }, { method: 'HEAD' }],
    ['to HEAD, in chunks', ok('transfer-encoding: chunked\r\n'), { body: '', ended: true }, { method: 'HEAD' }],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', { body: '', ended: true, is_reusable: true }],
    ['304 with a length', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', { body: '', ended: true }],
    [
      'after interim ones',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${ok('content-length: 1\r\n', 'a')}`,
      { status: 200, body: 'a' },
    ],
    [
      'that closes',
      ok('content-length: 1\r\nConnection: Keep-Alive, Close\r\n', 'a'),
      { ended: true, is_reusable: false },
    ],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na', { body: 'a', is_reusable: false }],
    [
      'of HTTP/1.0 that keeps alive',
      'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na',
      { is_reusable: true },
    ],
    ['with two equal lengths', ok('content-length: 1\r\ncontent-length: 1\r\n', 'a'), { body: 'a', ended: true }],
    [
      'with white space around a value',
      ok('x:\t a b \t\r\ncontent-length:0\r\n'),
      {
        headers: [
          ['x', 'a b'],
          ['content-length', '0'],
        ],
      },
    ],
    [
      'with latin1 in a value',
      ok('x: \xe9\r\ncontent-length: 0\r\n'),
      {
        headers: [
          ['x', '\xe9'],
          ['content-length', '0'],
        ],
      },
    ],
    [
      'with an empty value',
      ok('x:\r\ncontent-length: 0\r\n'),
      {
        headers: [
          ['x', ''],
          ['content-length', '0'],
        ],
      },
    ],
  ])('%s is read, cut at any byte', (...[, text, expected, options]) => {
    const whole = parse(text, options)
    expect(whole.error).toBeUndefined()
    expect(whole).toMatchObject(expected)
    for (let at = 0; at <= text.length; at++) expect(parse([text.slice(0, at), text.slice(at)], options)).toEqual(whole)
    expect(parse([...text], options)).toEqual(whole)
  })

  it.each(RESPONSES.map((one) => [one.name, one] as const))(
    '%s is read, cut at any byte',
    (_, { text, status, body }) => {
      const whole = parse(text, { method: 'POST' })
      expect(whole).toMatchObject({ status, body, ended: true })
      for (let at = 0; at <= text.length; at++) {
        expect(parse([text.slice(0, at), text.slice(at)], { method: 'POST' })).toEqual(whole)
      }
    },
  )

  it.each<[string, string, string]>([
    ['another protocol', 'HTTP/2 200 OK\r\n\r\n', 'HPE_INVALID_STATUS'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n', 'HPE_INVALID_STATUS'],
    ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n', 'HPE_INVALID_STATUS'],
    ['an empty line first', '\r\nHTTP/1.1 200 OK\r\n\r\n', 'HPE_INVALID_STATUS'],
    ['a line feed alone', 'HTTP/1.1 200 OK\nx: y\r\n\r\n', 'HPE_INVALID_STATUS'],
    ['a folded header', ok('x: a\r\n b\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['a space before the colon', ok('content-length : 1\r\n', 'a'), 'HPE_INVALID_HEADER_TOKEN'],
    ['no colon', ok('x\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['an empty name', ok(': x\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['a NUL in a value', ok('x: a\0b\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['a carriage return in a value', ok('x: a\rb\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['a line feed in a value', ok('x: a\nb: c\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['two lengths', ok('content-length: 1\r\ncontent-length: 2\r\n', 'aa'), 'HPE_INVALID_CONTENT_LENGTH'],
    ['a list of lengths', ok('content-length: 1, 1\r\n', 'a'), 'HPE_INVALID_CONTENT_LENGTH'],
    ['a negative length', ok('content-length: -1\r\n'), 'HPE_INVALID_CONTENT_LENGTH'],
    ['a length with a sign', ok('content-length: +1\r\n', 'a'), 'HPE_INVALID_CONTENT_LENGTH'],
    ['a hexadecimal length', ok('content-length: 0x1\r\n', 'a'), 'HPE_INVALID_CONTENT_LENGTH'],
    ['a length that is no number', ok('content-length: \r\n'), 'HPE_INVALID_CONTENT_LENGTH'],
    ['a length beyond what can be counted', ok(`content-length: ${'9'.repeat(16)}\r\n`), 'HPE_INVALID_CONTENT_LENGTH'],
    [
      'a length and chunks',
      ok('content-length: 1\r\ntransfer-encoding: chunked\r\n', 'a'),
      'HPE_INVALID_TRANSFER_ENCODING',
    ],
    [
      'chunks and a length',
      ok('transfer-encoding: chunked\r\ncontent-length: 1\r\n', 'a'),
      'HPE_INVALID_TRANSFER_ENCODING',
    ],
    ['another transfer-encoding', ok('transfer-encoding: gzip, chunked\r\n'), 'HPE_INVALID_TRANSFER_ENCODING'],
    [
      'two transfer-encodings',
      ok('transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n'),
      'HPE_INVALID_TRANSFER_ENCODING',
    ],
    ['identity beside chunks', ok('transfer-encoding: chunked, identity\r\n'), 'HPE_INVALID_TRANSFER_ENCODING'],
    [
      'chunks in HTTP/1.0',
      'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'HPE_INVALID_TRANSFER_ENCODING',
    ],
    ['no size of a chunk', ok('transfer-encoding: chunked\r\n', '\r\n'), 'HPE_INVALID_CHUNK_SIZE'],
    ['a size with a sign', ok('transfer-encoding: chunked\r\n', '+1\r\na\r\n0\r\n\r\n'), 'HPE_INVALID_CHUNK_SIZE'],
    ['a size with 0x', ok('transfer-encoding: chunked\r\n', '0x1\r\na\r\n0\r\n\r\n'), 'HPE_INVALID_CHUNK_SIZE'],
    [
      'a size with white space before it',
      ok('transfer-encoding: chunked\r\n', ' 1\r\na\r\n0\r\n\r\n'),
      'HPE_INVALID_CHUNK_SIZE',
    ],
    [
      'a size beyond what can be counted',
      ok('transfer-encoding: chunked\r\n', `${'f'.repeat(14)}\r\n`),
      'HPE_INVALID_CHUNK_SIZE',
    ],
    [
      'a chunk that is longer than its size',
      ok('transfer-encoding: chunked\r\n', '1\r\nab\r\n0\r\n\r\n'),
      'HPE_STRICT',
    ],
    [
      'a chunk that ends with a line feed alone',
      ok('transfer-encoding: chunked\r\n', '1\r\na\n0\r\n\r\n'),
      'HPE_STRICT',
    ],
    [
      'a trailer that is no header',
      ok('transfer-encoding: chunked\r\n', '0\r\nx y\r\n\r\n'),
      'HPE_INVALID_HEADER_TOKEN',
    ],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n', 'HPE_INVALID_UPGRADE'],
    ['bytes after it', ok('content-length: 1\r\n', 'ab'), 'HPE_CLOSED_CONNECTION'],
    ['a second response', ok('content-length: 0\r\n') + ok('content-length: 0\r\n'), 'HPE_CLOSED_CONNECTION'],
    ['an end in its head', 'HTTP/1.1 200 OK\r\ncontent-le', 'HPE_INVALID_EOF_STATE'],
    ['an end in its body', ok('content-length: 2\r\n', 'a'), 'HPE_INVALID_EOF_STATE'],
    ['an end in a chunk', ok('transfer-encoding: chunked\r\n', '5\r\nhel'), 'HPE_INVALID_EOF_STATE'],
    ['an end before the last chunk', ok('transfer-encoding: chunked\r\n', '1\r\na\r\n'), 'HPE_INVALID_EOF_STATE'],
    ['an end in its trailers', ok('transfer-encoding: chunked\r\n', '0\r\n'), 'HPE_INVALID_EOF_STATE'],
    ['nothing at all', '', 'ECONNRESET'],
  ])('with %s is refused, cut at any byte', (_, text, error) => {
    expect(parse(text).error).toBe(error)
    for (let at = 0; at <= text.length; at++) expect(parse([text.slice(0, at), text.slice(at)]).error).toBe(error)
    expect(parse([...text]).error).toBe(error)
  })

  it.each<[string, number, (size: number) => string]>([
    [
      'a head of at most its limit',
      MAX_HEAD_BYTES,
      (size) => `HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ${'a'.repeat(size - 39)}\r\n\r\n`,
    ],
    [
      'a number of headers of at most its limit',
      MAX_HEADERS,
      (count) => ok(`${'x: y\r\n'.repeat(count - 1)}content-length: 0\r\n`),
    ],
    [
      'a number of interim responses of at most its limit',
      MAX_INTERIM,
      (count) => 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(count) + ok('content-length: 0\r\n'),
    ],
    [
      'a line of a chunk of at most its limit',
      MAX_CHUNK_LINE_BYTES,
      (size) => ok('transfer-encoding: chunked\r\n', `1;${'x'.repeat(size - 2)}\r\na\r\n0\r\n\r\n`),
    ],
    [
      'trailers of at most their limit',
      MAX_HEAD_BYTES,
      (size) =>
        ok(
          'transfer-encoding: chunked\r\n',
          `0\r\n${'x'.repeat(10)}:${'y'.repeat(size / 2 - 11)}\r\n${'x'.repeat(10)}:${'y'.repeat(size / 2 - 11)}${'z'.repeat(size % 2)}\r\n\r\n`,
        ),
    ],
  ])('may have %s', (_, limit, make) => {
    expect(parse(make(limit)).error).toBeUndefined()
    expect(parse(make(limit)).ended).toBe(true)
    const beyond = parse(make(limit + (make.toString().includes('size / 2') ? 2 : 1))).error
    expect(['HPE_HEADER_OVERFLOW', 'HPE_TOO_MANY_INTERIM']).toContain(beyond ?? 'none')
  })

  it('passes on at once what one read brings, before its end or a fault', () => {
    const told: string[] = []
    const create = () =>
      createResponseParser(
        { method: 'GET' },
        {
          head: ({ status }) => void told.push(`${status}`),
          body: (bytes) => void told.push(Buffer.from(bytes).toString('latin1')),
          end: () => void told.push('end'),
        },
      )
    let parser = create()
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
    const read = (text: string) => parser.push(Buffer.from(text, 'latin1'))
    read(ok('transfer-encoding: chunked\r\n', `${chunk('one')}${chunk('two')}5\r\nth`))
    read('ree\r\n')
    expect(told.splice(0)).toEqual(['200', 'onetwoth', 'ree'])
    read(`${chunk('four')}0\r\n\r\n`)
    expect(told.splice(0)).toEqual(['four', 'end'])
    parser = create()
    expect(() => read(ok('transfer-encoding: chunked\r\n', `${chunk('one')}${chunk('two')}x\r\n`))).toThrow(Http1Error)
    expect(told).toEqual(['200', 'onetwo'])
  })

  it('of which a byte arrives at a time costs time in proportion to its length', () => {
    const text = ok(`x: ${'a'.repeat(60_000)}\r\ncontent-length: 0\r\n`)
    expect(parse([...text]).ended).toBe(true)
  })
})
