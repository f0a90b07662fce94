import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { sha256 } from '../kit/secret.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import { checkSecret, formatOf, isSecret, makeToken, newSecret, type TokenOrder } from './issue.ts'

const now = 1_700_000_000
const make = (order: Partial<TokenOrder> = {}, defaults = {}) => makeToken({ name: 'a', ...order }, { defaults, now })

function errorOf(work: () => unknown): GatewayError {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('nothing was refused')
}

const errorMessage = (order: Partial<TokenOrder>) => {
  const { code, message, detail } = errorOf(() => make(order))
  expect(code).toBe('invalid_value')
  return `${detail.param} | ${message}`
}

describe('a new token', () => {
  test('has a secret of sk- and 48 alphanumerics, of which only the hash and nine characters are stored', () => {
    const { token, secret } = make()
    expect(secret).toMatch(/^sk-[A-Za-z0-9]{48}$/)
    expect(token.prefix).toBe(secret.slice(0, 9))
    expect(token.hash).toBe(sha256(secret))
    expect(JSON.stringify(token)).not.toContain(secret.slice(9))
  })

  test('has a unique id, and by default all models and no end', () => {
    const { token } = make({ name: '  laptop ' })
    expect(token.token_id).toMatch(/^tok_[A-Za-z0-9]{16}$/)
    expect(token).toMatchObject({
      name: 'laptop',
      models: ['*'],
      families: null,
      expires_at: null,
      disabled: false,
      created_at: now,
      last_used_at: null,
    })
    expect(make().token.token_id).not.toBe(token.token_id)
  })

  test('uses the configured defaults for missing fields, and for nothing else', () => {
    const defaults = { models: ['acme/*'], families: ['rerank'] as EndpointFamily[], expires_after_days: 1.5 }
    expect(make({}, defaults).token).toMatchObject({
      models: ['acme/*'],
      families: ['rerank'],
      expires_at: now + 129_600,
    })
    const order = { models: ['x'], families: null, expires_at: null }
    expect(make(order, defaults).token).toMatchObject(order)
  })

  test('has each pattern and family once', () => {
    const { token } = make({ models: ['a', 'b', 'a'], families: ['rerank', 'rerank'] })
    expect([token.models, token.families]).toEqual([['a', 'b'], ['rerank']])
  })
})

describe('a request for a token is rejected with the field', () => {
  test('if the name is empty, too long, or contains control characters', () => {
    expect(errorMessage({ name: ' ' })).toBe('name | name: must not be empty.')
    expect(make({ name: 'n'.repeat(100) }).token.name).toHaveLength(100)
    expect(errorMessage({ name: 'n'.repeat(101) })).toContain('at most 100 characters; it has 101')
    expect(errorMessage({ name: 'a\u001b[31mb' })).toContain('control characters')
  })

  test('if there are no patterns, too many, or invalid ones', () => {
    expect(errorMessage({ models: [] })).toContain('"*" is every model')
    expect(errorMessage({ models: ['a', ''] })).toStartWith('models[1] | ')
    expect(errorMessage({ models: ['a b'] })).toContain('white space')
    const patterns = Array.from({ length: 1_001 }, (_, index) => `m${index}`)
    expect(make({ models: patterns.slice(1) }).token.models).toHaveLength(1_000)
    expect(errorMessage({ models: patterns })).toContain('at most 1000')
  })

  test('if there are no families or unknown ones', () => {
    expect(make({ families: [...ENDPOINT_FAMILIES] }).token.families).toEqual([...ENDPOINT_FAMILIES])
    expect(errorMessage({ families: [] })).toContain('null is every family')
    expect(errorMessage({ families: ['chat' as EndpointFamily] })).toContain(
      'found "chat", must be one of chatcompat, ',
    )
  })

  test('if the expiry has passed, or is not a time in seconds', () => {
    expect(make({ expires_at: now + 1 }).token.expires_at).toBe(now + 1)
    expect(errorMessage({ expires_at: now })).toContain('must lie in the future')
    expect(errorMessage({ expires_at: now + 0.5 })).toContain('whole unix seconds')
    expect(make({ expires_at: 253_402_300_799 }).token.expires_at).toBe(253_402_300_799)
    expect(errorMessage({ expires_at: 253_402_300_800 })).toContain('whole unix seconds')
    expect(errorMessage({ expires_at: Number.NaN })).toContain('whole unix seconds')
  })

  test('if the secret is too short, too long, or not valid in a header; without repeating it', () => {
    for (const good of ['x'.repeat(20), 'x'.repeat(512), '!~'.repeat(10)])
      expect(make({ secret: good }).secret).toBe(good)
    for (const bad of [
      '',
      'x'.repeat(19),
      'x'.repeat(513),
      `hunter2hunter2hunter2 ${'x'.repeat(20)}`,
      'é'.repeat(20),
    ]) {
      const { message, detail } = errorOf(() => checkSecret(bad))
      expect(detail.param).toBe('secret')
      expect(message).toContain('20 to 512 visible ASCII characters')
      if (bad) expect(message).not.toContain(bad.slice(0, 7))
    }
    expect(errorOf(() => checkSecret('x'.repeat(19))).message).toEndWith('has 19.')
  })
})

test('at most a quarter of a chosen secret is shown', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 20, maxLength: 512 }), (secret) => {
      const { prefix } = formatOf(secret)
      expect(isSecret(secret)).toBe(true)
      expect(prefix.length).toBeGreaterThanOrEqual(5)
      expect(prefix.length).toBeLessThanOrEqual(Math.min(9, secret.length / 4))
      expect(secret.startsWith(prefix)).toBe(true)
    }),
  )
  expect(formatOf(newSecret()).prefix).toHaveLength(9)
})
