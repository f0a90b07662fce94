import { describe, expect, test } from 'bun:test'
import { createSseBlocks, createSseParser, readSseBlock, type SseEvent, SseTooLong } from './sse.ts'

const encode = (text: string) => new TextEncoder().encode(text)

/** All events of a body that arrives in these pieces. */
function read(pieces: Uint8Array[], limit?: number): SseEvent[] {
  const parser = createSseParser(limit)
  const events = pieces.flatMap((piece) => parser.push(piece))
  return [...events, ...parser.end()]
}

/** The blocks of a body that arrives in these pieces, as passthrough separates them: nothing is left between two ends. */
function blocksIn(pieces: Uint8Array[]): string[] {
  const blocks = createSseBlocks()
  const found: string[] = []
  for (const text of [...pieces.flatMap((piece) => blocks.push(piece)), blocks.end()]) {
    for (let at = 0, end = 0; at < text.length; at = end) {
      end = text.indexOf('\n\n', at) + 2
      if (end <= at) throw new Error(`no end after ${at} in ${JSON.stringify(text)}`)
      found.push(text.slice(at, end))
    }
  }
  return found
}

const message = (data: string): SseEvent => ({ event: '', data })

/** A body with every peculiarity, and what it says. */
const BODY = [
  '\uFEFF: a comment first\n\n',
  'data: {"text":"Grüße, 世界 🚪"}\n\n',
  'data:no space\r\n\r\n',
  'data:  two spaces\r\r',
  ': ping\n\n',
  'event: error\r\ndata: {"error":{}}\r\n\r\n',
  'id: 7\nretry: 10\ndata: one\ndata: two\n\n',
  'data\n\n',
  'unknown: field\n\n',
  'data: [DONE]\n\n',
].join('')
const SAID: SseEvent[] = [
  message('{"text":"Grüße, 世界 🚪"}'),
  message('no space'),
  message(' two spaces'),
  { event: 'error', data: '{"error":{}}' },
  message('one\ntwo'),
  message(''),
  message('[DONE]'),
]

describe('events read from bytes', () => {
  test('one read with many events yields them all, in order', () => {
    expect(read([encode(BODY)])).toEqual(SAID)
  })

  test('a body cut in two at any byte says the same', () => {
    const bytes = encode(BODY)
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(SAID)
    }
  })

  test('a body in pieces of one, two or three bytes says the same, characters of four bytes included', () => {
    const bytes = encode(BODY)
    for (const size of [1, 2, 3]) {
      const pieces: Uint8Array[] = []
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      expect(read(pieces)).toEqual(SAID)
    }
  })

  test.each([
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ])('lines may end with %s, cut at any byte', (_, lineEnd) => {
    const bytes = encode(`data: a${lineEnd}${lineEnd}event: x${lineEnd}data: b${lineEnd}data: c${lineEnd}${lineEnd}`)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const events = read([bytes.subarray(0, cut), bytes.subarray(cut)])
      expect(events).toEqual([message('a'), { event: 'x', data: 'b\nc' }])
    }
  })

  test('an event is told as soon as its empty line is there, before the next read', () => {
    const parser = createSseParser()
    expect(parser.push(encode('data: a\n'))).toEqual([])
    expect(parser.push(encode('\n'))).toEqual([message('a')])
  })

  test('a CR that ends a read is the end of a line at once, and an LF after it is part of it', () => {
    const parser = createSseParser()
    expect(parser.push(encode('data: a\r\n\r'))).toEqual([message('a')])
    expect(parser.push(encode('\ndata: b\n\n'))).toEqual([message('b')])
  })

  test('more empty lines than one after an event say nothing, cut at any byte', () => {
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      for (let count = 2; count <= 7; count++) {
        const gap = lineEnd.repeat(count)
        const bytes = encode(`${gap}data: a${gap}data: b${gap}`)
        for (let cut = 0; cut <= bytes.length; cut++) {
          const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)]
          expect(blocksIn(pieces).map(readSseBlock).filter(Boolean)).toMatchObject([{ data: 'a' }, { data: 'b' }])
          expect(read(pieces)).toEqual([message('a'), message('b')])
        }
      }
    }
  })

  test('the event before the end counts even without its empty line or its line end', () => {
    expect(read([encode('data: a\n\ndata: b\n')])).toEqual([message('a'), message('b')])
    expect(read([encode('data: a\n\ndata: b')])).toEqual([message('a'), message('b')])
  })

  test('a comment glued to an event does not swallow it', () => {
    expect(read([encode(': ping\ndata: a\n\n')])).toEqual([message('a')])
  })

  test('an event name without data is no event, and does not stick to the next', () => {
    expect(read([encode('event: ping\n\ndata: a\n\n')])).toEqual([message('a')])
  })

  test('only comments and no data yield nothing', () => {
    expect(read([encode(': one\n\n: two\n\n')])).toEqual([])
    expect(read([])).toEqual([])
  })

  test('bytes that are no UTF-8 become replacement characters instead of a failure', () => {
    expect(read([Uint8Array.of(...encode('data: a'), 0xff, ...encode('b\n\n'))])).toEqual([message('a\uFFFDb')])
  })
})

describe('the size of an event', () => {
  const LIMIT = 20

  test('an event of exactly the limit passes, one character more does not', () => {
    const fits = `data: ${'x'.repeat(LIMIT - 6)}`
    expect(read([encode(`${fits}\n\n`)], LIMIT)).toEqual([message('x'.repeat(LIMIT - 6))])
    expect(() => read([encode(`${fits}x\n\n`)], LIMIT)).toThrow(SseTooLong)
  })

  test('a line that never ends is refused while it grows, not at its end', () => {
    const parser = createSseParser(LIMIT)
    parser.push(encode('x'.repeat(LIMIT)))
    expect(() => parser.push(encode('x'))).toThrow(SseTooLong)
  })

  test('many short lines of one event add up', () => {
    const parser = createSseParser(LIMIT)
    parser.push(encode('data: 45678\n')) // 11 characters
    expect(() => parser.push(encode('data: 45678\n'))).toThrow(SseTooLong)
  })

  test('many events, each within the limit, are no trouble', () => {
    expect(read([encode('data: 45678\n\n'.repeat(100))], LIMIT)).toHaveLength(100)
  })
})

describe('events kept as they came', () => {
  /** The text of all events of a body that arrives in these pieces. */
  function keep(pieces: Uint8Array[], limit?: number): string {
    const blocks = createSseBlocks(limit)
    const text = pieces.flatMap((piece) => blocks.push(piece)).join('') + blocks.end()
    return Buffer.from(text, 'latin1').toString()
  }
  const eventsIn = (text: string) =>
    text
      .split('\n\n')
      .map(readSseBlock)
      .filter((block) => block !== undefined)
      .map(({ event, data }): SseEvent => ({ event, data }))
  const KEPT = BODY.slice(1).replaceAll('\r\n', '\n').replaceAll('\r', '\n')

  test('are the bytes that came, with one kind of line end and without a mark', () => {
    expect(keep([encode(BODY)])).toBe(KEPT)
    expect(eventsIn(KEPT)).toEqual(SAID)
  })

  test('are the same however they are cut, and come no later than their end', () => {
    const bytes = encode(BODY)
    expect(keep(Array.from(bytes, (byte) => new Uint8Array([byte])))).toBe(KEPT)
    for (let at = 0; at <= bytes.length; at++) expect(keep([bytes.slice(0, at), bytes.slice(at)])).toBe(KEPT)
    expect(createSseBlocks().push(encode('data: a\n\ndata: b'))).toEqual(['data: a\n\n'])
  })

  test('the first one is a text of its own where its beginning came before', () => {
    const blocks = createSseBlocks()
    expect(blocks.push(encode('data: a'))).toEqual([])
    expect(blocks.push(encode('\n\n\n\ndata: b\n\ndata: c\n\n\ndata: d\n'))).toEqual([
      'data: a\n\n',
      'data: b\n\ndata: c\n\n',
    ])
    expect(blocks.push(encode('\n\n\n'))).toEqual(['data: d\n\n'])
    expect(blocks.end()).toBe('')
  })

  test('bytes that are no UTF-8 come out as they went in', () => {
    const bytes = new Uint8Array([...encode('data: '), 0xff, 0xfe, 0x80, ...encode('\n\n')])
    expect(Buffer.from(createSseBlocks().push(bytes).join(''), 'latin1')).toEqual(Buffer.from(bytes))
  })

  test('an event that the end of the body closes is whole', () => {
    expect(keep([encode('data: a')])).toBe('data: a\n\n')
    expect(keep([encode('data: a\n')])).toBe('data: a\n\n')
    expect(keep([encode('\n\n\n')])).toBe('\n\n')
  })

  test('one that grows past the limit is refused, and one at the limit is not', () => {
    expect(keep([encode('data: 34567'), encode('\n\n')], 11)).toBe('data: 34567\n\n')
    expect(() => keep([encode('data: 345'), encode('678')], 11)).toThrow(SseTooLong)
  })
})
