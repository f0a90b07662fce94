import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../../src/spec/error.ts'
import { DIRECTIVES, extractDirectiveLines, parseDirectives } from './directives.ts'

const parse = (line: string, choices = 1) => parseDirectives([line], { param: 'messages[0].content', choices })

function refusal(line: string, choices = 1): GatewayError {
  try {
    parse(line, choices)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error(`accepted: ${line}`)
}

describe('directive lines', () => {
  test.each([
    ['hello', 'hello', []],
    ['@sandbox tokens=1', '', ['tokens=1']],
    ['hello\n@sandbox tokens=1 usage=none\nworld', 'hello\nworld', ['tokens=1 usage=none']],
    ['  \t@sandbox\ttokens=1\r\nhello', 'hello', ['tokens=1']],
    ['@sandbox a=1\n@sandbox b=2', '', ['a=1', 'b=2']],
    ['@sandbox', '', ['']],
    ['@sandboxes a=1', '@sandboxes a=1', []],
    ['ask @sandbox a=1', 'ask @sandbox a=1', []],
    ['a\n\n  b  ', 'a\n\n  b  ', []],
  ])('are removed from %j', (text, rest, lines) => {
    expect(extractDirectiveLines(text)).toEqual({ rest, lines })
  })
})

describe('directives', () => {
  test('are parsed to numbers and strings; a later value wins', () => {
    expect(parse('tokens=5 interval_ms=2  status=503 retry_after=7 usage=none finish=length tokens=6')).toEqual({
      tokens: 6,
      interval_ms: 2,
      status: 503,
      retry_after: 7,
      usage: 'none',
      finish: 'length',
    })
  })

  for (const [key, rule] of Object.entries(DIRECTIVES)) {
    const beside = key === 'retry_after' ? ' status=429' : ''
    if ('values' in rule) {
      test(`${key} accepts each of its values and no other`, () => {
        for (const value of rule.values) expect(Object.values(parse(`${key}=${value}`))).toEqual([value])
        expect(refusal(`${key}=other`).message).toContain(`${key} must be`)
      })
    } else {
      test(`${key} accepts its minimum and its maximum and nothing beyond`, () => {
        const { minimum, maximum } = rule
        expect(parse(`${key}=${minimum}${beside}`)).toMatchObject({ [key]: minimum })
        expect(parse(`${key}=${maximum}${beside}`)).toMatchObject({ [key]: maximum })
        for (const value of [minimum - 1, maximum + 1, `${minimum}.5`, '', 'x', '1e3', '9'.repeat(30)]) {
          expect(refusal(`${key}=${value}${beside}`).message).toContain(`from ${minimum} to ${maximum}`)
        }
      })
    }
  }

  test.each(['nonsense=1', 'tokens', '=1', '', 'constructor=1', '__proto__=1', 'tokens = 5'])(
    '%j is rejected with a list of the known directives',
    (line) => {
      const error = refusal(line)
      expect(error.code).toBe('upstream_invalid_request')
      expect(error.status).toBe(400)
      expect(error.detail.param).toBe('messages[0].content')
      for (const known of ['tokens=0..100000', 'interval_ms=0..600000', 'status=400..599', 'usage=none']) {
        expect(error.message).toContain(known)
      }
    },
  )

  test('retry_after alone is rejected, because there is nothing to retry', () => {
    expect(refusal('retry_after=5').message).toContain('needs a status')
  })

  test('the token limit applies to all choices together', () => {
    expect(parse('tokens=50000', 2)).toEqual({ tokens: 50_000 })
    expect(refusal('tokens=50001', 2).message).toContain('tokens times n')
  })

  test("an unknown word is not repeated when it does not look like a key: it may be anyone's text", () => {
    expect(refusal('my-secret-text=1').message).not.toContain('secret')
    expect(refusal('tokns=1').message).toContain('"tokns"')
  })
})
