import { expect, test } from 'bun:test'
import { loadCanvas } from './canvas.ts'
import { createShapeCheck, legibleText, NO_FONT } from './legible.ts'

const noCjk = (sign: string) => !/\p{Script=Han}|\p{Extended_Pictographic}/u.test(sign)

test.each([
  ['Zürich, Łódź, Ποτάμι, Река', 'Zürich, Łódź, Ποτάμι, Река'],
  ['a 日本 river 🎬 x', 'a … river … x'],
  ['日 本 a', '…  a'],
  ['日本', NO_FONT],
  ['🎬!', NO_FONT],
  ['…', NO_FONT],
  ['', ''],
  ['?!', '?!'],
])('%j is shown as %j where there is no font for Chinese and pictures', (text, shown) => {
  expect(legibleText(text, noCjk)).toBe(shown)
})

test('Latin is never asked about: it comes with the package', () => {
  expect(legibleText('abc é я', () => false)).toBe('abc é я')
})

test('with the fonts of the package, letters have a shape and what is no character has none', async () => {
  const { create, fontOf } = await loadCanvas()
  const hasShape = createShapeCheck(create, fontOf)
  for (const sign of ['a', 'é', 'Ł', 'Я', 'ή', 'ế', '…', 'e\u0301'])
    expect([sign, hasShape(sign)]).toEqual([sign, true])
  for (const sign of ['\u{10fffe}', '\u{fffff}', 'a\u{10fffe}']) expect([sign, hasShape(sign)]).toEqual([sign, false])
})
