import { describe, expect, test } from 'bun:test'
import { storedProject, storedToken } from '../../test/kit/accounts.ts'
import { matchesGlob } from '../kit/glob.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'
import { callerOf } from './caller.ts'

const token = storedToken

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

describe('a caller whose token belongs to a project', () => {
  test('may use only what both may use', () => {
    const project = storedProject({ models: ['acme/*', 'other/*'], families: ['chatcompat', 'rerank'] })
    const caller = callerOf(token({ models: ['*/small', '!'], families: ['chatcompat', 'image-generation'] }), project)
    expect(['acme/small', 'other/small', 'third/small', 'acme/large'].filter(caller.mayUseModel)).toEqual([
      'acme/small',
      'other/small',
    ])
    expect(ENDPOINT_FAMILIES.filter(caller.mayUseFamily)).toEqual(['chatcompat'])
    expect(caller.is_limited).toBe(true)
  })

  test('is limited where only the project is', () => {
    expect(callerOf(token({}), storedProject()).is_limited).toBe(false)
    const caller = callerOf(token({}), storedProject({ models: ['acme/*'] }))
    expect([caller.is_limited, caller.mayUseModel('acme/x'), caller.mayUseModel('x/x')]).toEqual([true, true, false])
  })

  test('has the limits of both, and no member for what has none', () => {
    const limits = {
      rate_limits: { requests_per_minute: 5 },
      budgets: [{ amount: 1, window: 'day' as const }],
      end_users: { rate_limits: { tokens_per_day: 7 } },
    }
    const { mayUseModel: _, mayUseFamily: __, ...caller } = callerOf(token(limits), storedProject({ name: 'team' }))
    expect(caller).toEqual({
      token_id: 'tok_a',
      name: 'a',
      is_limited: false,
      ...limits,
      project_id: 'proj_a',
      project: { project_id: 'proj_a', name: 'team' },
    })
    expect(callerOf(token({ end_users: { budgets: [], rate_limits: {} } }))).not.toHaveProperty('end_users')
    expect(callerOf(token({}), storedProject(limits)).project).toEqual({
      project_id: 'proj_a',
      name: 'team a',
      ...limits,
    })
    expect(callerOf(token({}))).not.toHaveProperty('project')
  })
})
