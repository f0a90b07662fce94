import { describe, expect, test } from 'bun:test'
import { nearModel } from './near-names.ts'

const ids = [
  'acme/large',
  'acme/large-2',
  'acme/small',
  'openai/gpt-5.1',
  'openai/gpt-5.1-mini',
  'plain',
  'x/claude-opus-5-20260101',
]

describe('the model that was probably meant', () => {
  test.each([
    ['a typing error in the id', 'acme/lagre', 'acme/large'],
    ['a typing error in the part after the slash', 'smal', 'acme/small'],
    ['another case', 'ACME/Large', 'acme/large'],
    ['another provider’s prefix of the same letters', 'amce/small', 'acme/small'],
    ['an id without a slash', 'plaim', 'plain'],
    ['a name without its version', 'claude-opus-5', 'x/claude-opus-5-20260101'],
    ['a spelling with one wrong digit', 'openai/gpt-5.2', 'openai/gpt-5.1'],
  ])('is found for %s', (_, name, meant) => {
    expect(nearModel(name, ids)).toBe(meant)
  })

  test.each([
    ['a name that resembles none', 'mistral/huge'],
    ['a name of two letters', 'pl'],
    ['a name of more than 100 characters', `${'a'.repeat(101)}`],
  ])('is unknown for %s', (_, name) => {
    expect(nearModel(name, ids)).toBeUndefined()
  })

  test('allows a quarter of the letters to differ, and at most three', () => {
    expect(nearModel('plaxx', ids)).toBeUndefined()
    expect(nearModel('openai/gpt-5.1-mxxx', ids)).toBe('openai/gpt-5.1-mini')
    expect(nearModel('openai/gpt-5.1-xxxx', ids)).toBeUndefined()
  })
})
