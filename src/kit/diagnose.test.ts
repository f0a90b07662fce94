import { expect, test } from 'bun:test'
import Type from 'typebox'
import { diagnose, foundText } from './diagnose.ts'

test.each([
  [[], 'an empty array'],
  [['a'], 'an array of 1 item'],
  [['a', 'b', 'c', 'd', 'e'], 'an array of 5 items'],
  ['a', 'the string "a"'],
  ['a'.repeat(41), 'a string of 41 characters'],
])('a message about %j says how much was found, and repeats no long text', (value, text) => {
  expect(foundText(value)).toBe(text)
})

test('the error of a value that is none of several fixed ones names all of them', () => {
  const states = Type.Union([Type.Literal('drained'), Type.Literal('disabled'), Type.Null()])
  expect(diagnose(states, 'gone')).toMatchObject({ kind: 'value', expected: '"drained" or "disabled" or null' })
})
