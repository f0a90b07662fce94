import { expect, test } from 'bun:test'
import { nearest } from './nearest.ts'

const words = ['port', 'host', 'base_url', 'max_body_bytes', 'models']

test.each([
  ['prot', 'port'],
  ['Port', 'port'],
  ['hots', 'host'],
  ['base-url', 'base_url'],
  ['max_body_byte', 'max_body_bytes'],
  ['maximum_body', undefined],
  ['model', 'models'],
  ['zzz', undefined],
  ['', undefined],
  ['cost', 'host'],
])('corrects %p to %p', (typed, meant) => {
  expect(nearest(typed, words)).toBe(meant as string)
})

test('chooses the closer of two words', () => {
  expect(nearest('toke', ['coke', 'token', 'to'])).toBe('coke')
  expect(nearest('tokenn', ['tokens_', 'token'])).toBe('token')
})
