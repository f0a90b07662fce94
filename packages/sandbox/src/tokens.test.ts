import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { countPrompt, countTokens, IMAGE_TOKENS, splitTokens } from './tokens.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('a', 'é', '語', '😀', ' ', '\n', '.', '_', '\ud800', '7') }),
)

describe('the tokenizer', () => {
  test.each([
    ['', []],
    ['Hello, world', ['Hello', ',', ' world']],
    ['12345678', ['12345678']],
    ['123456789', ['12345678', '9']],
    [' 123456789', [' 12345678', '9']],
    ['a  b', ['a', '  ', 'b']],
    ['        ', ['        ']],
    ['         ', ['        ', ' ']],
    ['a_b', ['a', '_', 'b']],
    ['é語😀x', ['é語', '😀', 'x']],
    ['--', ['-', '-']],
  ])('splits %j by its rule', (whole, pieces) => {
    expect(splitTokens(whole)).toEqual(pieces)
  })

  test('returns tokens that join to the text, as many as countTokens counts', () => {
    fc.assert(
      fc.property(text, (whole) => {
        const pieces = splitTokens(whole)
        expect(pieces.join('')).toBe(whole)
        expect(pieces).not.toContain('')
        expect(countTokens(whole)).toBe(pieces.length)
      }),
    )
  })

  test('splits the beginning of a text, up to any token, into the same tokens', () => {
    fc.assert(
      fc.property(text, fc.nat(20), (whole, count) => {
        const pieces = splitTokens(whole, count)
        expect(pieces).toEqual(splitTokens(whole).slice(0, count))
        expect(splitTokens(pieces.join(''))).toEqual(pieces)
      }),
    )
  })

  test('never splits a surrogate pair', () => {
    expect(splitTokens('😀'.repeat(20))).toEqual(Array(20).fill('😀'))
  })
})

describe("a prompt's tokens", () => {
  test('are the tokens of all texts of all messages and of the tools, and a fixed number for each image', () => {
    const tools = [{ type: 'function' as const, function: { name: 'f', parameters: { type: 'object' } } }]
    const call = { id: 'c', type: 'function' as const, function: { name: 'f_g', arguments: '{"a":1}' } }
    const image = { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${'A'.repeat(500)}` } }
    const counted = countPrompt({
      model: 'sandbox/general',
      messages: [
        { role: 'system', content: 'one two' },
        { role: 'user', name: 'ann', content: [{ type: 'text', text: 'one two three' }, image, image] },
        { role: 'assistant', content: null, reasoning_content: 'so so', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: 'four' },
      ],
      tools,
    })
    const pieces = 2 + 1 + 3 + 2 + countTokens('f_g') + countTokens('{"a":1}') + 1 + countTokens(JSON.stringify(tools))
    expect(counted).toEqual({ input: pieces + 2 * IMAGE_TOKENS, image: 2 * IMAGE_TOKENS, audio: 0 })
  })
})
