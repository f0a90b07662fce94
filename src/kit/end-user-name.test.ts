import { expect, test } from 'bun:test'
import { endUserName } from './end-user-name.ts'

test('a name of at most 256 characters stays, a longer or garbling one becomes an id that is its own name', () => {
  expect([endUserName(' ann '), endUserName(' '), endUserName('a'.repeat(256))]).toEqual([
    'ann',
    undefined,
    'a'.repeat(256),
  ])
  for (const long of ['a'.repeat(257), 'a\nb', 'a\ud800']) {
    const id = endUserName(long) ?? ''
    expect(id).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(endUserName(id)).toBe(id)
  }
})
