import { expect, test } from 'bun:test'
import { formName } from './form-name.ts'

test('escapes only the characters that could end the quotes', () => {
  expect(formName('a"\r\nb: c; d')).toBe('a%22%0D%0Ab: c; d')
  expect(formName('images[0]%')).toBe('images[0]%')
})
