import { describe, expect, test } from 'bun:test'
import { presentedSecret } from './request-parts.ts'

const SECRET = 'sk-abc'
const asked = (path: string, headers: Record<string, string> = {}) =>
  presentedSecret(new Request(`http://gatehouse.test${path}`, { headers }))

describe('the presented secret', () => {
  test.each([['Bearer sk-abc'], ['bearer sk-abc'], ['BEARER sk-abc'], ['Bearer   sk-abc']])(
    'is the bearer token of %p',
    (authorization) => {
      expect(asked('/v1/models', { authorization })).toBe(SECRET)
    },
  )

  test.each([['x-api-key'], ['x-goog-api-key'], ['X-Api-Key']])('is the value of %p', (name) => {
    expect(asked('/v1/models', { [name]: SECRET })).toBe(SECRET)
  })

  test.each([
    ['/v1beta/models?key=sk-abc'],
    ['/v1beta/models?alt=sse&key=sk-abc'],
    ['/v1beta/models?key=sk-abc&alt=sse'],
    ['/v1beta/models?key=sk%2Dabc'],
  ])('is the key of %p', (path) => {
    expect(asked(path)).toBe(SECRET)
  })

  test.each([
    ['/v1/models'],
    ['/v1/models?monkey=sk-abc'],
    ['/v1/models?key-=sk-abc'],
    ['/v1/models?key='],
    ['/key=sk-abc'],
  ])('is absent from %p', (path) => {
    expect(asked(path)).toBeUndefined()
  })

  test.each([['Bearer'], ['Bearer '], ['Basic c2stYWJj'], ['sk-abc'], ['Bearer sk abc'], ['Bearersk-abc'], ['']])(
    'is absent from authorization %p, and then looked for elsewhere',
    (authorization) => {
      expect(asked('/v1/models', { authorization })).toBeUndefined()
      expect(asked('/v1/models', { authorization, 'x-api-key': 'other' })).toBe('other')
    },
  )

  test('is read from the first place that has one', () => {
    const all = { authorization: 'Bearer one', 'x-api-key': 'two', 'x-goog-api-key': 'three' }
    const { authorization: _, ...withoutFirst } = all
    const { 'x-api-key': __, ...withoutSecond } = withoutFirst
    expect(asked('/?key=four', all)).toBe('one')
    expect(asked('/?key=four', withoutFirst)).toBe('two')
    expect(asked('/?key=four', withoutSecond)).toBe('three')
    expect(asked('/?key=four')).toBe('four')
  })
})
