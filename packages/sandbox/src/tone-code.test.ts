import { describe, expect, test } from 'bun:test'
import { audioOf, secondsOfText, startOfByte, textOf } from './tone-code.ts'

const audio = (text: string, format: 'mp3' | 'wav' | 'pcm') => new Uint8Array(Buffer.concat([...audioOf(text, format)]))

describe.each(['mp3', 'wav'] as const)('%s', (format) => {
  test.each(['a', 'Good morning.', 'Zoë 🐈 \n\t', '\u0000ÿ', 'x'.repeat(4_096)])('gives %j back', (text) => {
    expect(textOf(audio(text, format))).toBe(text)
  })

  test('gives every byte back', () => {
    const text = Array.from({ length: 0x800 }, (_, code) => String.fromCharCode(code)).join('')
    expect(textOf(audio(text, format))).toBe(text)
  })

  test('of which the end is missing gives the beginning', () => {
    const whole = audio('Good morning', format)
    expect('Good morning').toStartWith(textOf(whole.subarray(0, Math.floor(whole.length / 2))) ?? '-')
  })
})

test('MP3 after a tag gives the text', () => {
  const tag = new Uint8Array([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 1, 2, ...Array<number>(130).fill(7)])
  expect(textOf(new Uint8Array([...tag, ...audio('Hi', 'mp3')]))).toBe('Hi')
})

test('a louder and a quieter copy give the text', () => {
  const samples = audio('Good morning', 'wav')
  for (const factor of [0.3, 2]) {
    const copy = Buffer.from(samples)
    for (let at = 44; at + 1 < copy.length; at += 2) copy.writeInt16LE(Math.round(copy.readInt16LE(at) * factor), at)
    expect(textOf(new Uint8Array(copy))).toBe('Good morning')
  }
})

test('other bytes are other audio', () => {
  const silent = audio('Hi', 'wav').fill(0, 44)
  for (const bytes of [
    new Uint8Array(),
    new Uint8Array(500),
    audio('Hi', 'pcm'),
    silent,
    audio('Hi', 'mp3').fill(255),
  ]) {
    expect(textOf(bytes)).toBeUndefined()
  }
})

test('times are those of the samples', () => {
  expect(audio('Hi', 'pcm').length / 2 / 24_000).toBeCloseTo(secondsOfText('Hi'), 6)
  expect(startOfByte(2) - startOfByte(1)).toBeCloseTo(0.048, 6)
})
