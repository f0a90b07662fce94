import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { GatewayError } from '../spec/error.ts'
import type { StoredToken } from '../store/tokens/account-store.ts'
import { chooseToken } from './choose.ts'
import { makeToken } from './issue.ts'

const make = (name: string, change: Partial<StoredToken> = {}): StoredToken => ({
  ...makeToken({ name }, { defaults: {}, now: 0 }).token,
  ...change,
})

function errorMessage(tokens: StoredToken[], which: string): string {
  try {
    return `chose ${chooseToken(tokens, which).token_id}`
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'invalid_value') return error.message
    throw error
  }
}

describe('selecting a token', () => {
  const laptop = make('laptop', { token_id: 'tok_aaaa000000000000', prefix: 'sk-Abcdef' })
  const ci = make('ci', { token_id: 'tok_aaaa111111111111', prefix: 'sk-Abcxyz' })
  const tokens = [laptop, ci]

  test('works by id, by name, by the start of an id, or by the start of a visible prefix', () => {
    for (const which of [
      'tok_aaaa0',
      laptop.token_id,
      'laptop',
      ' laptop ',
      'sk-Abcdef',
      'sk-Abcd',
      'sk-Abcdef...',
      'sk-Abcdef…',
    ]) {
      expect(chooseToken(tokens, which)).toBe(laptop)
    }
  })

  test('works by the complete secret too, for a secret that was leaked', () => {
    const { token, secret } = makeToken({ name: 'leaked' }, { defaults: {}, now: 0 })
    expect(chooseToken([...tokens, token], secret)).toBe(token)
  })

  test('rejects an ambiguous term and names the candidates', () => {
    expect(errorMessage(tokens, 'tok_aaaa')).toBe(
      `Several tokens fit: ${laptop.token_id} (laptop, created 1970-01-01), ${ci.token_id} (ci, created 1970-01-01). Give the id of one.`,
    )
    const many = Array.from({ length: 12 }, () => make('same'))
    expect(errorMessage(many, 'same')).toContain(' and 2 more. ')
  })

  test('prefers active tokens among those of one name', () => {
    const old = make('ci', { disabled: true })
    expect(chooseToken([old, ci], 'ci')).toBe(ci)
    expect(chooseToken([old], 'ci')).toBe(old)
  })

  test('prefers a name to the start of an id', () => {
    const odd = make('tok_aaaa')
    expect(chooseToken([...tokens, odd], 'tok_aaaa')).toBe(odd)
  })

  test('rejects starts that are too short to be intended', () => {
    expect(errorMessage([laptop], 'tok_')).toContain('No token has "tok_"')
    expect(errorMessage([laptop], '')).toContain('No token has ""')
    expect(errorMessage([laptop], 'tok_a')).toStartWith('chose')
  })

  test('reports that no token matches, without repeating a possible secret', () => {
    expect(errorMessage(tokens, 'phone')).toBe('No token has "phone" as its id, name or prefix; there are 2 in all.')
    const { secret } = makeToken({ name: 'other' }, { defaults: {}, now: 0 })
    expect(errorMessage(tokens, secret)).not.toContain(secret.slice(0, 12))
  })

  test('by any start of any id finds that token or reports that it is ambiguous', () => {
    const crowd = Array.from({ length: 40 }, (_, index) => make(`n${index}`))
    fc.assert(
      fc.property(fc.nat(39), fc.integer({ min: 5, max: 20 }), (index, length) => {
        const selected = crowd[index]
        if (!selected) throw new Error('out of range')
        const which = selected.token_id.slice(0, length)
        const candidates = crowd.filter(({ token_id }) => token_id.startsWith(which))
        if (candidates.length === 1) expect(chooseToken(crowd, which)).toBe(selected)
        else expect(errorMessage(crowd, which)).toStartWith('Several tokens fit: ')
      }),
    )
  })
})
