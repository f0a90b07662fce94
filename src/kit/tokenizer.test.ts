import { afterAll, expect, test } from 'bun:test'
import { systemClock } from './clock.ts'
import { createTokenizer } from './tokenizer.ts'

const tokenizer = createTokenizer({ clock: systemClock })
afterAll(() => tokenizer.close())

test('counts the tokens of each text, also of what looks like a special token', async () => {
  const [hello, none, special] = await tokenizer.count(['hello world', '', '<|endoftext|>'])
  expect([hello, none]).toEqual([2, 0])
  expect(special).toBeGreaterThan(1)
})

test('projects the count of a very long text from its first part', async () => {
  const [whole = 0] = await tokenizer.count(['word '.repeat(40_000)])
  const [double] = await tokenizer.count(['word '.repeat(80_000)])
  expect(double).toBe(whole * 2)
})

test('a question that is open when the worker is stopped is answered roughly, not left waiting', async () => {
  const other = createTokenizer({ clock: systemClock })
  const counts = other.count(['12345678'])
  other.close()
  expect(await counts).toEqual([2])
})
