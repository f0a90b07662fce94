import { describe, expect, test } from 'bun:test'
import { checkMedium } from './medium.ts'

const refused = (value: string) => {
  try {
    checkMedium('image', value)
    return false
  } catch {
    return true
  }
}

describe('a media input', () => {
  test.each([
    ['a URL', 'https://example.com/a.png', false],
    ['base64', 'AAAA', false],
    ['a data URI', 'data:image/png;base64,AAAA', false],
    ['a data URI with a parameter', 'data:image/png;name=a.png;base64,AAAA', false],
    ['a data URI without bytes', 'data:image/png;base64,', true],
    ['text', 'a picture of a cat', true],
  ])('%s', (_, value, isRefused) => {
    expect(refused(value)).toBe(isRefused)
  })

  test('is no data URI with a head of thousands of characters, which would take long to read', () => {
    expect(refused(`data:image/png${';a=b'.repeat(500)};base64,AAAA`)).toBe(true)
  })
})
