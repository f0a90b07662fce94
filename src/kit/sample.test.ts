import { expect, test } from 'bun:test'
import { createSample, MAX_SAMPLE_CHARACTERS } from './sample.ts'

/** A token a character; keeps what it was asked. */
function letters() {
  const asked: string[][] = []
  const count = async (texts: string[]) => {
    asked.push(texts)
    return texts.map((text) => text.length)
  }
  return { count, asked, close() {} }
}

function sampleOf(...texts: string[]) {
  const sample = createSample()
  for (const text of texts) sample.add(text)
  return sample
}

test('counts all added text as one text', async () => {
  const all = letters()
  expect(await sampleOf('Hel', 'lo ', 'world').tokens(all)).toBe(11)
  expect(all.asked).toEqual([['Hello world']])
  expect(await sampleOf().tokens(letters())).toBe(0)
})

test('extrapolates a text above the limit from its beginning', async () => {
  for (const [length, counted] of [
    [MAX_SAMPLE_CHARACTERS - 1, MAX_SAMPLE_CHARACTERS - 1],
    [MAX_SAMPLE_CHARACTERS, MAX_SAMPLE_CHARACTERS],
    [MAX_SAMPLE_CHARACTERS + 1, MAX_SAMPLE_CHARACTERS],
    [3 * MAX_SAMPLE_CHARACTERS, MAX_SAMPLE_CHARACTERS],
  ] as const) {
    const all = letters()
    expect(await sampleOf('a '.repeat(length).slice(0, length)).tokens(all)).toBe(length)
    expect(all.asked.flat().join('').length).toBe(counted)
  }
  const sample = createSample()
  for (let added = 0; added < 10 * MAX_SAMPLE_CHARACTERS; added += 1000) sample.add('word '.repeat(200))
  expect(await sample.tokens(letters())).toBe(10 * MAX_SAMPLE_CHARACTERS)
})

test('counts the decoded content of JSON strings, in order with the rest', async () => {
  const all = letters()
  const sample = createSample()
  const words = ['Grüße ', '"', '\\', '\n', '世', '\ud83d\ude80']
  sample.add('<')
  for (const word of words) sample.addRaw(Buffer.from(JSON.stringify(word).slice(1, -1)).toString('latin1'))
  sample.add('>')
  for (let count = 0; count < 200; count++) sample.addRaw('a')
  await sample.tokens(all)
  expect(all.asked).toEqual([[`<${words.join('')}>${'a'.repeat(200)}`]])
})
