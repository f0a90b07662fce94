import { expect, test } from 'bun:test'
import { interpolate } from './interpolate.ts'

const environment = { KEY: 'abc', EMPTY: '', BRACE: '${KEY}' }
const filled = (text: string) => interpolate(text, environment).text
const troubles = (text: string) => interpolate(text, environment).troubles

test('a reference is replaced wherever it stands, as often as it stands', () => {
  expect(filled('${KEY}')).toBe('abc')
  expect(filled('x-${KEY}-${KEY}!')).toBe('x-abc-abc!')
})

test('text without references stays as it is', () => {
  for (const text of ['', 'plain', '$KEY', '$', '{KEY}', 'a$b', '100$']) {
    expect(interpolate(text, environment)).toEqual({ text, changed: false, troubles: [] })
  }
})

test('a default is used where the variable is not set or empty, and not where it is', () => {
  expect(filled('${NONE:-other}')).toBe('other')
  expect(filled('${EMPTY:-other}')).toBe('other')
  expect(filled('${KEY:-other}')).toBe('abc')
  expect(filled('${NONE:-}')).toBe('')
  expect(filled('${NONE:-http://a:1/b?c=-}')).toBe('http://a:1/b?c=-')
})

test('an empty variable is set', () => {
  expect(interpolate('${EMPTY}', environment)).toEqual({ text: '', changed: true, troubles: [] })
})

test('"$${" stands for the characters themselves', () => {
  expect(interpolate('$${KEY}', environment)).toEqual({ text: '${KEY}', changed: false, troubles: [] })
  expect(filled('$${KEY} ${KEY}')).toBe('${KEY} abc')
})

test('what a variable holds is not read again', () => {
  expect(filled('${BRACE}')).toBe('${KEY}')
})

test('every variable that is not set is named', () => {
  expect(troubles('${NONE} ${KEY} ${OTHER}')).toEqual([
    'the environment variable NONE is not set',
    'the environment variable OTHER is not set',
  ])
})

test.each(['${', '${KEY', '${}', '${1A}', '${A B}', '${KEY:default}', '${KEY-default}'])('%s is a mistake', (text) => {
  expect(troubles(text)[0]).toStartWith('a "${" that is not ${NAME} or ${NAME:-default}')
})
