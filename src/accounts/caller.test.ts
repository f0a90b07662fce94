import { describe, expect, test } from 'bun:test'
import { matchesGlob } from '../kit/glob.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'
import type { Token } from '../spec/token.ts'
import { callerOf } from './caller.ts'

function token(change: Partial<Token>): Token {
  return {
    token_id: 'tok_a',
    name: 'a',
    prefix: 'sk-abcdef',
    models: ['*'],
    families: null,
    expires_at: null,
    disabled: false,
    created_at: 0,
    last_used_at: null,
    ...change,
  }
}

describe('a caller', () => {
  test('has the id of its token', () => {
    expect(callerOf(token({})).token_id).toBe('tok_a')
  })

  test('may use the models that one of its patterns matches, and no other', () => {
    const caller = callerOf(token({ models: ['sandbox/*', 'acme/small'] }))
    expect(caller.mayUseModel('sandbox/general')).toBe(true)
    expect(caller.mayUseModel('acme/small')).toBe(true)
    expect(caller.mayUseModel('acme/large')).toBe(false)
    expect(caller.mayUseModel('general')).toBe(false)
  })

  test('may use every model with the pattern *, whatever the other patterns', () => {
    expect(callerOf(token({ models: ['acme/*', '*'] })).mayUseModel('any thing')).toBe(true)
  })

  test('may use nothing if its list is empty', () => {
    expect(callerOf(token({ models: [] })).mayUseModel('sandbox/general')).toBe(false)
  })

  test('may use every family with null, otherwise those that are listed', () => {
    const [every, one, none] = [null, ['chatcompat'] as EndpointFamily[], []].map((families) =>
      callerOf(token({ families })),
    )
    for (const family of ENDPOINT_FAMILIES) {
      expect(every?.mayUseFamily(family)).toBe(true)
      expect(one?.mayUseFamily(family)).toBe(family === 'chatcompat')
      expect(none?.mayUseFamily(family)).toBe(false)
    }
  })

  test('returns the same result the second time, and after more models than its cache holds', () => {
    const caller = callerOf(token({ models: ['a*', '*5'] }))
    const ids = Array.from({ length: 2_500 }, (_, index) => `${index % 2 ? 'a' : 'b'}${index}`)
    for (const id of [...ids, ...ids]) {
      expect(caller.mayUseModel(id)).toBe(matchesGlob('a*', id) || matchesGlob('*5', id))
    }
  })
})
