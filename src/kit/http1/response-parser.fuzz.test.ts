/**
 * The parser with responses that are damaged at random, and cut at random. `GATEHOUSE_FUZZ=1000000` takes as many instead of a
 * fast share (`npm run test:fuzz`); a failure names its number, which makes the same input again.
 */
import { describe, expect, it } from 'bun:test'
import { RESPONSES } from '../../../test/kit/http1-responses.ts'
import { createResponseParser, Http1Error, type ResponseHead } from './response-parser.ts'

const INPUTS = Number(process.env.GATEHOUSE_FUZZ ?? 20_000)
const FIRST = Number(process.env.GATEHOUSE_FUZZ_FIRST ?? 0)

type Outcome = { head: ResponseHead | undefined; body: string; ended: boolean; error: string | undefined }

/** Also checks the order of the events. */
function outcomeOf(pieces: readonly string[]): Outcome {
  const outcome: Outcome = { head: undefined, body: '', ended: false, error: undefined }
  const assertOpen = () => {
    if (outcome.ended || outcome.error !== undefined) throw new Error('an event followed the end')
  }
  const parser = createResponseParser(
    { method: 'POST' },
    {
      head(head) {
        assertOpen()
        if (outcome.head) throw new Error('a second head')
        outcome.head = head
      },
      body(bytes) {
        assertOpen()
        if (!outcome.head) throw new Error('a body before the head')
        outcome.body += Buffer.from(bytes).toString('latin1')
      },
      end() {
        assertOpen()
        if (!outcome.head) throw new Error('an end before the head')
        outcome.ended = true
      },
    },
  )
  try {
    for (const piece of pieces) parser.push(Buffer.from(piece, 'latin1'))
    if (!outcome.ended) parser.close()
  } catch (error) {
    if (!(error instanceof Http1Error)) throw error
    outcome.error = error.code
  }
  return outcome
}

/** A number from 0 to below 1 at each call, always the same ones for a seed (mulberry32). */
function numbersOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** What parsers have stumbled over. */
const TOKENS = [
  '\r\n',
  '\n',
  '\r',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '\0',
  '0\r\n\r\n',
  '1\r\na\r\n',
  'ffffffffffffffff',
  '-1',
  '+1',
  '0x',
  'chunked',
  'content-length: 1\r\n',
  'Content-Length: 99999999999999999999\r\n',
  'transfer-encoding: chunked\r\n',
  'transfer-encoding: gzip\r\n',
  'connection: close\r\n',
  ' folded\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  'HTTP/1.0 200 OK\r\n',
  '\x80',
  '\xff',
]

function damaged(number: number): { text: string; pieces: string[] } {
  const random = numbersOf(number)
  const below = (count: number) => Math.floor(random() * count)
  const one = <T>(list: readonly T[]): T => list[below(list.length)] as T
  let text = one(RESPONSES).text
  for (let times = below(4); times > 0; times--) {
    const at = below(text.length + 1)
    const rest = text.slice(at)
    const damages = [
      () => text.slice(0, at) + one(TOKENS) + rest,
      () => text.slice(0, at) + rest.slice(1 + below(8)),
      () => text.slice(0, at) + String.fromCharCode(below(256)) + rest.slice(1),
      () => text.slice(0, at),
      () => text.slice(0, at) + text.slice(Math.max(0, at - below(40))),
      () => text.slice(0, at) + one(RESPONSES).text.slice(below(30)),
    ]
    text = one(damages)()
  }
  const cuts = Array.from({ length: 1 + below(4) }, () => below(text.length + 1)).sort((a, b) => a - b)
  const pieces = [...cuts, text.length].map((end, index) => text.slice(cuts[index - 1] ?? 0, end))
  return { text, pieces }
}

describe('the parser of responses', () => {
  it(`reads ${INPUTS} damaged responses or refuses them, and cuts change nothing`, () => {
    let accepted = 0
    for (let number = FIRST; number < FIRST + INPUTS; number++) {
      const { text, pieces } = damaged(number)
      let whole: Outcome
      let cut: Outcome
      try {
        whole = outcomeOf([text])
        cut = outcomeOf(pieces)
      } catch (error) {
        throw new Error(`input ${number}, ${JSON.stringify(text)}`, { cause: error })
      }
      if (JSON.stringify(whole) !== JSON.stringify(cut)) {
        expect({ number, text, ...cut }).toEqual({ number, text, ...whole })
      }
      if (whole.body.length > text.length) throw new Error(`input ${number}: a body longer than its response`)
      if (whole.ended && whole.error === undefined) accepted++
    }
    // Neither all nor none: the damages are worth something.
    expect(accepted).toBeGreaterThan(INPUTS / 10)
    expect(accepted).toBeLessThan((INPUTS * 9) / 10)
  }, 600_000)
})
