import { expect, test } from 'bun:test'
import { interpolate } from './interpolate.ts'

const environment = { KEY: 'abc', EMPTY: '', BRACE: '${KEY}' }
const filled = (text: string) => interpolate(text, environment).text
const troubles = (text: string) => interpolate(text, environment).troubles

test('replaces every reference', () => {
  expect(filled('${KEY}')).toBe('abc')
  expect(filled('x-${KEY}-${KEY}!')).toBe('x-abc-abc!')
})

test('leaves text without references unchanged', () => {
  for (const text of ['', 'plain', '$KEY', '$', '{KEY}', 'a$b', '100$']) {
    expect(interpolate(text, environment)).toEqual({ text, changed: false, troubles: [] })
  }
})

test('uses the default when the variable is unset or empty', () => {
  expect(filled('${NONE:-other}')).toBe('other')
  expect(filled('${EMPTY:-other}')).toBe('other')
  expect(filled('${KEY:-other}')).toBe('abc')
  expect(filled('${NONE:-}')).toBe('')
  expect(filled('${NONE:-http://a:1/b?c=-}')).toBe('http://a:1/b?c=-')
})

test('treats an empty variable without default as set', () => {
  expect(interpolate('${EMPTY}', environment)).toEqual({ text: '', changed: true, troubles: [] })
})

test('unescapes "$${"', () => {
  expect(interpolate('$${KEY}', environment)).toEqual({ text: '${KEY}', changed: false, troubles: [] })
  expect(filled('$${KEY} ${KEY}')).toBe('${KEY} abc')
})

test('does not interpolate the value of a variable', () => {
  expect(filled('${BRACE}')).toBe('${KEY}')
})

test('names every variable that is not set', () => {
  expect(troubles('${NONE} ${KEY} ${OTHER}')).toEqual([
    'the environment variable NONE is not set',
    'the environment variable OTHER is not set',
  ])
})

test.each(['${', '${KEY', '${}', '${1A}', '${A B}', '${KEY:default}', '${KEY-default}'])('rejects %s', (text) => {
  expect(troubles(text)[0]).toStartWith('a "${" that is not ${NAME}, ${NAME:-default} or ${file:path}')
})

test('fills in the content of a file, and does not interpolate it', () => {
  const read = (file: string) => (file === '/run/key' ? 'x${KEY}' : file)
  expect(interpolate('a ${file:/run/key} ${file:b c} ${KEY}', environment, read)).toEqual({
    text: 'a x${KEY} b c abc',
    changed: true,
    troubles: [],
  })
})

test('says why a file cannot be used', () => {
  const read = () => {
    throw new Error('it is empty')
  }
  expect(interpolate('${file:/run/key}', environment, read).troubles).toEqual([
    'the file "/run/key" cannot be used: it is empty',
  ])
  expect(interpolate('${file:/run/key}', environment).troubles).toEqual([
    'the file "/run/key" cannot be used: no file can be read here',
  ])
})
