import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../../src/spec/error.ts'
import { FAIL_CODES } from '../../../src/spec/task.ts'
import type { Rule } from './directives.ts'
import { ORDER_DIRECTIVES, parseOrderPrompt } from './order-directives.ts'

const read = (line: string) => parseOrderPrompt(`A river.\n@sandbox ${line}`).directives as Record<string, unknown>

function refusal(line: string): GatewayError {
  try {
    read(line)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error(`accepted: ${line}`)
}

describe('directives of an order', () => {
  test('are removed from the prompt', () => {
    const { text, directives } = parseOrderPrompt('A river.\n@sandbox quick=1 limit=2\nAt dawn.')
    expect(text).toBe('A river.\nAt dawn.')
    expect(directives).toEqual({ quick: '1', limit: 2 })
    expect(parseOrderPrompt('A river.')).toEqual({ text: 'A river.', directives: {} })
  })

  for (const [key, rule] of Object.entries<Rule>(ORDER_DIRECTIVES)) {
    const beside = key === 'retry_after' ? ' status=429' : ''
    if ('values' in rule) {
      test(`${key} accepts each of its values and no other`, () => {
        for (const value of rule.values) expect(read(`${key}=${value}`)).toEqual({ [key]: value })
        for (const value of ['other', '0', '']) expect(refusal(`${key}=${value}`).message).toContain(`${key} must be`)
      })
    } else {
      test(`${key} accepts its minimum and its maximum and nothing beyond`, () => {
        const { minimum, maximum } = rule
        for (const value of [minimum, maximum]) expect(read(`${key}=${value}${beside}`)).toMatchObject({ [key]: value })
        for (const value of [minimum - 1, maximum + 1, 'x']) {
          expect(refusal(`${key}=${value}${beside}`).message).toContain(`from ${minimum} to ${maximum}`)
        }
      })
    }
  }

  test('fail accepts every fail_code', () => {
    expect<string[]>(ORDER_DIRECTIVES.fail.values).toEqual(Object.keys(FAIL_CODES))
  })

  test.each(['tokens=5', 'cut_after=1', 'nonsense=1', 'quick', '', 'constructor=1'])(
    '%j is rejected with a list of the known directives',
    (line) => {
      const { code, message, detail } = refusal(line)
      expect([code, detail.param]).toEqual(['upstream_invalid_request', 'prompt'])
      for (const known of ['status=400..599', 'quick=1', 'render_ms=0..600000', 'fail=invalid_input|']) {
        expect(message).toContain(known)
      }
    },
  )

  test('retry_after requires a status or a limit', () => {
    expect(refusal('retry_after=5').message).toContain('needs a status or a limit')
    expect(read('retry_after=5 limit=1')).toEqual({ retry_after: 5, limit: 1 })
  })
})
