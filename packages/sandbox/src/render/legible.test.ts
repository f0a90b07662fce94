import { expect, test } from 'bun:test'
import { loadCanvas } from './canvas.ts'
import { createGlyphCheck, legibleText, NO_FONT } from './legible.ts'

const noCjk = (grapheme: string) => !/\p{Script=Han}|\p{Extended_Pictographic}/u.test(grapheme)

test.each([
  ['Zürich, Łódź, Ποτάμι, Река', 'Zürich, Łódź, Ποτάμι, Река'],
  ['a 日本 river 🎬 x', 'a … river … x'],
  ['日 本 a', '…  a'],
  ['日本', NO_FONT],
  ['🎬!', NO_FONT],
  ['…', NO_FONT],
  ['', ''],
  ['?!', '?!'],
])('%j is shown as %j without a font for Chinese and pictographs', (text, shown) => {
  expect(legibleText(text, noCjk)).toBe(shown)
})

test('Latin needs no check: the bundled fonts have it', () => {
  expect(legibleText('abc é я', () => false)).toBe('abc é я')
})

test('with the bundled fonts, letters have a glyph and noncharacters have none', async () => {
  const { create, fontOf } = await loadCanvas()
  const hasGlyph = createGlyphCheck(create, fontOf)
  for (const grapheme of ['a', 'é', 'Ł', 'Я', 'ή', 'ế', '…', 'e\u0301'])
    expect([grapheme, hasGlyph(grapheme)]).toEqual([grapheme, true])
  for (const grapheme of ['\u{10fffe}', '\u{fffff}', 'a\u{10fffe}'])
    expect([grapheme, hasGlyph(grapheme)]).toEqual([grapheme, false])
})
