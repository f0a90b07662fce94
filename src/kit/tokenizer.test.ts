import { afterAll, expect, test } from 'bun:test'
import { systemClock } from './clock.ts'
import { createTokenizer } from './tokenizer.ts'

const tokenizer = createTokenizer({ clock: systemClock })
afterAll(() => tokenizer.close())

test('counts the tokens of each text, including text that looks like a special token', async () => {
  const [hello, none, special] = await tokenizer.count(['hello world', '', '<|endoftext|>'])
  expect([hello, none]).toEqual([2, 0])
  expect(special).toBeGreaterThan(1)
})

test('counts any text quickly and almost exactly', async () => {
  const long = 200_000
  const counts = await tokenizer.count(['x'.repeat(long), '漢字'.repeat(long / 2), ' '.repeat(long)])
  expect(counts.every((count) => count > 0)).toBe(true)
  const [exact = 0] = await tokenizer.count(['漢字'.repeat(249)])
  const [cut = 0] = await tokenizer.count(['漢字'.repeat(249 * 4)])
  expect(Math.abs(cut - 4 * exact)).toBeLessThanOrEqual(4)
}, 120_000)

test('answers a pending count with an estimate when the worker stops', async () => {
  const other = createTokenizer({ clock: systemClock })
  const counts = other.count(['12345678'])
  other.close()
  expect(await counts).toEqual([2])
})
