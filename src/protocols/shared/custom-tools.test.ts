import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  ARGUMENTS_END,
  ARGUMENTS_START,
  argumentsOf,
  argumentsPiece,
  createFreeTextReader,
  freeText,
} from './custom-tools.ts'

/** The text of arguments that arrive in these pieces. */
function read(...pieces: string[]): string {
  const reader = createFreeTextReader()
  const texts = pieces.map((piece) => reader.add(piece))
  return texts.join('') + reader.end()
}

const cutAt = (text: string, cuts: number[]): string[] => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((one, other) => one - other)
  return [0, ...places].map((from, at) => text.slice(from, places[at] ?? text.length))
}
const texts = fc.string({ unit: 'binary', maxLength: 20 })
const cuts = fc.array(fc.nat(), { maxLength: 8 })

describe('the free text of a custom call', () => {
  test('is the same however its arguments are split and encoded', () => {
    fc.assert(
      fc.property(texts, cuts, fc.boolean(), (text, places, isEscaped) => {
        const plain = argumentsOf(text)
        const escaped = plain.replaceAll(
          /[^\u0020-\u007e]/g,
          (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
        )
        expect(read(...cutAt(isEscaped ? escaped : plain, places))).toBe(text)
      }),
    )
  })

  test('survives the way into arguments piece by piece', () => {
    fc.assert(
      fc.property(texts, cuts, (text, places) => {
        const pieces = cutAt(text, places).map(argumentsPiece)
        expect(freeText([ARGUMENTS_START, ...pieces, ARGUMENTS_END].join(''))).toBe(text)
        expect(read(ARGUMENTS_START, ...pieces, ARGUMENTS_END)).toBe(text)
      }),
    )
  })

  test('arrives before its arguments are complete, and never half a character', () => {
    const reader = createFreeTextReader()
    expect(['{ "inp', 'ut" : "a\\', 'nb\\u00', 'e9\\ud83d', '\\ude00'].map(reader.add)).toEqual([
      '',
      'a',
      '\nb',
      'é',
      '😀',
    ])
    expect(reader.add('" , "more": 1}')).toBe('')
    expect(reader.end()).toBe('')
  })

  test.each([
    ['text that is no JSON', '*** Begin Patch', '*** Begin Patch'],
    ['another argument first', '{"why":"x","input":"a"}', 'a'],
    ['other arguments only', '{"patch":"a"}', '{"patch":"a"}'],
    ['a text that is cut', '{"input":"ab\\', 'ab'],
    ['a line end that is not escaped', '{"input":"a\nb"}', 'a\nb'],
    ['no arguments', '{}', ''],
    ['nothing', '', ''],
  ])('is read from %s', (_, text, expected) => {
    expect(read(...text)).toBe(expected)
    expect(read(text)).toBe(expected)
  })
})
