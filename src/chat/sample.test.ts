import { afterAll, expect, test } from 'bun:test'
import { systemClock } from '../kit/clock.ts'
import { createTokenizer } from '../kit/tokenizer.ts'
import { createSample, KEPT_CHARACTERS } from './sample.ts'

/** A token a character; keeps what it was asked. */
function letters() {
  const asked: string[][] = []
  const count = async (texts: string[]) => {
    asked.push(texts)
    return texts.map((text) => text.length)
  }
  return { count, asked, close() {} }
}

const tokenizer = createTokenizer({ clock: systemClock })
afterAll(() => tokenizer.close())

function sampleOf(...texts: string[]) {
  const sample = createSample()
  for (const text of texts) sample.add(text)
  return sample
}

test('all that was added is counted as one text', async () => {
  const all = letters()
  expect(await sampleOf('Hel', 'lo ', 'world').tokens(all)).toBe(11)
  expect(all.asked).toEqual([['Hello world']])
  expect(await sampleOf().tokens(letters())).toBe(0)
})

test('of a text that is too long the beginning stands for the rest, on both sides of the limit', async () => {
  for (const [length, counted] of [
    [KEPT_CHARACTERS - 1, KEPT_CHARACTERS - 1],
    [KEPT_CHARACTERS, KEPT_CHARACTERS],
    [KEPT_CHARACTERS + 1, KEPT_CHARACTERS],
    [3 * KEPT_CHARACTERS, KEPT_CHARACTERS],
  ] as const) {
    const all = letters()
    expect(await sampleOf('a '.repeat(length).slice(0, length)).tokens(all)).toBe(length)
    expect(all.asked.flat().join('').length).toBe(counted)
  }
  const sample = createSample()
  for (let added = 0; added < 10 * KEPT_CHARACTERS; added += 1000) sample.add('word '.repeat(200))
  expect(await sample.tokens(letters())).toBe(10 * KEPT_CHARACTERS)
})

test.each([
  ['x'.repeat(1501), [500, 500, 500, 1]],
  [`a ${'x'.repeat(499)} b`, [503]],
  [`a ${'x'.repeat(500)} b`, [502, 2]],
  [' '.repeat(1000), [500, 500]],
])('a long run is counted in pieces', async (text, lengths) => {
  const all = letters()
  await sampleOf(text).tokens(all)
  expect(all.asked[0]?.map((part) => part.length)).toEqual(lengths)
  expect(all.asked[0]?.join('')).toBe(text)
})

test('no text takes long to count, and the count is near the true one', async () => {
  const [exact = 0] = await tokenizer.count(['漢字'.repeat(500)])
  for (const text of ['x'.repeat(KEPT_CHARACTERS), '漢字'.repeat(KEPT_CHARACTERS / 2), ' '.repeat(KEPT_CHARACTERS)]) {
    expect(await sampleOf(text).tokens(tokenizer)).toBeGreaterThan(0)
  }
  const cut = await sampleOf('漢字'.repeat(500)).tokens(tokenizer)
  expect(Math.abs(cut - exact)).toBeLessThanOrEqual(2)
}, 5_000)
