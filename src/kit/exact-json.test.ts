import { describe, expect, it } from 'bun:test'
import fc from 'fast-check'
import {
  isRawNumber,
  parseExactJson,
  parseJsonKeeping,
  parseRequestJson,
  TooManyRawNumbers,
  takeRawInteger,
} from './json.ts'

const SEED = 20_261_124
const RUNS = 3000

const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 22 })
/** A number in any form that JSON allows. */
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(
      fc.constant('0'),
      digits.map((text) => text.replace(/^0+(?=.)/, '')),
    ),
    fc.oneof(
      fc.constant(''),
      digits.map((text) => `.${text}`),
    ),
    fc.oneof(
      fc.constant(''),
      fc.tuple(fc.constantFrom('e', 'E', 'e+', 'E-', 'e-'), fc.nat(400)).map((parts) => parts.join('')),
    ),
  )
  .map((parts) => parts.join(''))
const space = fc.constantFrom('', ' ', '\n\t')
const plain = (text: string) => JSON.stringify(JSON.parse(text))

describe('parseExactJson', () => {
  it('keeps every number as it was written, wherever it stands', () => {
    fc.assert(
      fc.property(number, space, (one, gap) => {
        const text = `{"a":${gap}${one},"b":[${gap}${one}${gap},${gap}${one}],"c":"${one}"}`
        expect(JSON.stringify(parseExactJson(text))).toBe(text.replaceAll(/[\s]/g, ''))
      }),
      { seed: SEED, numRuns: RUNS },
    )
  })

  it('keeps the last of two members with one name', () => {
    expect(JSON.stringify(parseExactJson('{"a":1.0,"a":2.0}'))).toBe('{"a":2.0}')
  })

  it('returns undefined for what is not JSON or is nested too deep', () => {
    expect(parseExactJson('{"a":1.0')).toBeUndefined()
    expect(parseExactJson(`${'['.repeat(300)}1.0${']'.repeat(300)}`)).toBeUndefined()
  })

  it('returns plain numbers where there are more than 100,000 to keep', () => {
    const list = (count: number) => `[${Array(count).fill('1.0').join(',')}]`
    expect(isRawNumber((parseExactJson(list(100_000)) as unknown[])[0])).toBe(true)
    expect((parseExactJson(list(100_001)) as unknown[])[0]).toBe(1)
  })
})

describe('parseJsonKeeping', () => {
  it('keeps digits below the named members only', () => {
    const text = '{"usage":1.0,"n":9007199254740993,"list":[{"args":{"id":9007199254740993,"x":[1.0]}}]}'
    const parsed = parseJsonKeeping(text, ['args']) as { usage: unknown; n: unknown }
    expect([parsed.usage, parsed.n]).toEqual([1, 9007199254740992])
    expect(JSON.stringify(parsed)).toContain('"args":{"id":9007199254740993,"x":[1.0]}')
  })
})

describe('parseRequestJson', () => {
  it('keeps integers beyond 2^53 and numbers beyond all, and makes other numbers plain', () => {
    const text =
      '{"a":9007199254740993,"b":1e400,"c":-1e20,"d":1.0,"e":0.1234567890123456789,"f":1e3,"g":9007199254740991}'
    expect(JSON.stringify(parseRequestJson(text))).toBe(
      '{"a":9007199254740993,"b":1e400,"c":-1e20,"d":1,"e":0.12345678901234568,"f":1000,"g":9007199254740991}',
    )
  })

  it('keeps every digit below the named members', () => {
    const text = '{"t":1.0,"input":{"t":1.0,"list":[{"u":-0}]},"list":[{"input":[1e-5]}]}'
    expect(JSON.stringify(parseRequestJson(text, true, ['input']))).toBe(text.replace('1.0', '1'))
  })

  it('returns the same as JSON.parse where no number is large', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.stringify(parseRequestJson(text))).toBe(JSON.stringify(parseRequestJson(text, true, ['a', 'b'])))
        if (!/\d{16}|e\+/i.test(text)) expect(JSON.stringify(parseRequestJson(text))).toBe(plain(text))
      }),
      { seed: SEED, numRuns: RUNS },
    )
  })

  it('does not replace the prototype of an object', () => {
    const parsed = parseRequestJson('{"__proto__":{"a":1e30},"b":1e30}') as object
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype)
    expect(JSON.stringify(parsed)).toBe('{"__proto__":{"a":1e30},"b":1e30}')
  })

  it('throws for a text with more than 100,000 numbers to keep, and for what is not JSON', () => {
    expect(() => parseRequestJson(`[${Array(100_001).fill('1e20').join(',')}]`)).toThrow(TooManyRawNumbers)
    expect(() => parseRequestJson('{"a":1e20')).toThrow(SyntaxError)
  })
})

describe('takeRawInteger', () => {
  it('takes an integer beyond 2^53 out, and nothing else', () => {
    const body = parseRequestJson('{"seed":9007199254740993,"other":1e400,"small":1}') as Record<string, unknown>
    expect(takeRawInteger(body, 'seed')?.rawJSON).toBe('9007199254740993')
    expect(body.seed).toBe(9007199254740992)
    expect([takeRawInteger(body, 'other'), takeRawInteger(body, 'small'), takeRawInteger(body, 'none')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
})
