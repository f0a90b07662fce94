import { expect, test } from 'bun:test'
import { refusedToken } from './refused-token.ts'

test('a refused token is reported with the code of RFC 6749 where the response has one', () => {
  const plain = 'the token request was refused with 400'
  expect(refusedToken(400, { error: 'invalid_grant' })).toBe(`${plain} (invalid_grant)`)
  for (const payload of [
    {},
    undefined,
    'a page',
    { error: null },
    { error: 'The secret abc is wrong.' },
    { error: {} },
  ])
    expect(refusedToken(400, payload)).toBe(plain)
})
