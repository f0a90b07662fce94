import { describe, expect, test } from 'bun:test'
import { LINE_HEIGHT, layoutText, wrap } from './word-wrap.ts'

const upTo = (length: number) => (line: string) => [...line].length <= length

describe('lines', () => {
  test.each([
    ['one two three', 7, ['one two', 'three']],
    ['one two three', 13, ['one two three']],
    ['one two three', 12, ['one two', 'three']],
    ['a\n\nb  c', 10, ['a', 'b c']],
    ['abcdefgh', 3, ['abc', 'def', 'gh']],
    ['xy abcdefgh z', 4, ['xy', 'abcd', 'efgh', 'z']],
    ['xy abcdef z', 4, ['xy', 'abcd', 'ef z']],
    ['', 4, []],
    ['日本の川', 2, ['日本', 'の川']],
  ])('%j within %d letters', (text, length, lines) => {
    expect(wrap(text, upTo(length))).toEqual(lines)
  })

  test('a grapheme of several code points is never split, even if it is too wide', () => {
    expect(wrap('👩‍👩‍👧‍👦👩‍👩‍👧‍👦', upTo(3))).toEqual(['👩‍👩‍👧‍👦', '👩‍👩‍👧‍👦'])
  })
})

describe('a text in its box', () => {
  const measure = (text: string, pixels: number) => [...text].length * pixels
  const box = { width: 100, height: 50, largest: 20, smallest: 5 }

  test('has the largest size if it is short', () => {
    expect(layoutText('abc', box, measure)).toEqual({ pixels: 20, lines: ['abc'] })
  })

  test('is made smaller until it fits', () => {
    const { pixels, lines } = layoutText('aaaa bbbb cccc dddd', box, measure)
    expect(pixels).toBeWithin(5, 20)
    expect(lines.join(' ')).toBe('aaaa bbbb cccc dddd')
    expect(lines.length * pixels * LINE_HEIGHT).toBeLessThanOrEqual(50)
  })

  test('ends with an ellipsis if it does not fit at the smallest size', () => {
    const { pixels, lines } = layoutText('word '.repeat(200), box, measure)
    expect(pixels).toBe(5)
    expect(lines).toHaveLength(8)
    expect(lines.at(-1)).toEndWith('…')
    for (const line of lines) expect(measure(line, pixels)).toBeLessThanOrEqual(100)
  })
})
