import { describe, expect, test } from 'bun:test'
import { openSealed, sealingKey, sealText } from './sealed-text.ts'

const text = (fill: number) => Buffer.from(Array.from({ length: 32 }, (_, at) => at + fill)).toString('base64')
const key = (fill: number) => {
  const found = sealingKey(text(fill))
  if (!found) throw new Error('no key')
  return found
}

describe('a sealing key', () => {
  test('has 32 bytes in base64', () => {
    expect(sealingKey(text(0))?.id).toMatch(/^[0-9a-f]{16}$/)
    expect(sealingKey(text(0))?.id).not.toBe(sealingKey(text(1))?.id)
  })

  test.each([
    ['31 bytes', Buffer.alloc(31, 'ab').toString('base64')],
    ['33 bytes', Buffer.alloc(33, 'ab').toString('base64')],
    ['no padding', text(0).slice(0, 43)],
    ['base64url', text(200).replace('+', '-').replace('/', '_').replace(/^./, '_')],
    ['hexadecimal digits', 'ab'.repeat(32)],
    ['a line feed at its end', `${text(0)}\n`],
    ['bits that are not used', `${text(0).slice(0, 42)}9=`],
    ['one repeated byte', Buffer.alloc(32).toString('base64')],
  ])('does not have %s', (_, given) => {
    expect(sealingKey(given)).toBeUndefined()
  })
})

describe('a sealed text', () => {
  const sealed = sealText('Grüße', key(1), 'row 1')

  test('is opened with the key that sealed it, beside others', () => {
    expect(openSealed(sealed, [key(2), key(1)], 'row 1')).toEqual({ text: 'Grüße' })
    expect(Buffer.from(sealed.sealed, 'base64').toString('latin1')).not.toContain('Gr')
  })

  test('is different each time', () => {
    expect(sealText('Grüße', key(1), 'row 1').sealed).not.toBe(sealed.sealed)
  })

  test('is not opened with another key, in another place, or after any of its bytes was changed', () => {
    expect(openSealed(sealed, [key(2)], 'row 1')).toBe('unknown_key')
    expect(openSealed({ ...sealed, key_id: key(2).id }, [key(2)], 'row 1')).toBe('changed')
    expect(openSealed(sealed, [key(1)], 'row 2')).toBe('changed')
    const bytes = Buffer.from(sealed.sealed, 'base64')
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(openSealed({ ...sealed, sealed: changed.toString('base64') }, [key(1)], 'row 1')).toBe('changed')
    }
    expect(openSealed({ ...sealed, sealed: bytes.subarray(0, 27).toString('base64') }, [key(1)], 'row 1')).toBe(
      'changed',
    )
  })
})
