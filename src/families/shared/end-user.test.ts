import { describe, expect, test } from 'bun:test'
import { sha256 } from '../../kit/secret.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import { readUserField, readUserFields, readUserHeader } from './call-options.ts'

type Named = { request_id: string; end_user?: string }

const fromHeader = (value: string | null): string | undefined => {
  const call: Named = { request_id: 'r' }
  readUserHeader(call, value)
  return call.end_user
}
const fromBody = (body: unknown, family: EndpointFamily = 'chatcompat', header: string | null = null) => {
  const call: Named = { request_id: 'r' }
  readUserHeader(call, header)
  readUserField(call, body, family)
  return call.end_user
}

describe('the end user of a request', () => {
  test.each([
    ['user', { user: ' ann ' }, 'chatcompat', 'ann'],
    ['safety_identifier', { safety_identifier: 'b' }, 'chatcompat-response', 'b'],
    ['user before safety_identifier', { user: 'a', safety_identifier: 'b' }, 'chatcompat', 'a'],
    ['safety_identifier where user is empty', { user: ' ', safety_identifier: 'b' }, 'chatcompat', 'b'],
    ['user of embeddings', { user: 'e' }, 'embeddings', 'e'],
    ['metadata.user_id of messages', { metadata: { user_id: 'm' } }, 'messages-compat', 'm'],
  ] as const)('is read from %s', (_, body, family, expected) => {
    expect(fromBody(body, family)).toBe(expected)
  })

  test('is the one of the header, where that names one', () => {
    expect(fromBody({ user: 'b' }, 'chatcompat', ' h ')).toBe('h')
    expect(fromBody({ user: 'b' }, 'chatcompat', '')).toBe('b')
    expect(fromBody({ metadata: { user_id: 'm' } }, 'messages-compat', 'h')).toBe('h')
  })

  test.each([
    [{}, 'chatcompat'],
    [{ user: 5 }, 'chatcompat'],
    [{ user: null, safety_identifier: '' }, 'chatcompat'],
    [{ metadata: { user_id: 'm' } }, 'chatcompat'],
    [{ user: 'u' }, 'messages-compat'],
    [{ metadata: 'x' }, 'messages-compat'],
    ['text', 'chatcompat'],
    [undefined, 'chatcompat'],
    [[{ user: 'u' }], 'chatcompat'],
  ] as const)('is nobody in %j of %s', (body, family) => {
    expect(fromBody(body, family)).toBeUndefined()
  })

  test('has an id where its name is not valid Unicode: databases would store another name', () => {
    expect(fromBody({ user: 'a\ud800' })).toMatch(/^sha256:/)
    expect(fromBody({ user: 'a\u{1f600}' })).toBe('a\u{1f600}')
  })

  test('keeps its name up to 256 characters; a longer one has an id that stays the same', () => {
    expect(fromBody({ user: ` ${'x'.repeat(256)} ` })).toBe('x'.repeat(256))
    const long = 'x'.repeat(257)
    expect(fromBody({ user: long })).toBe(`sha256:${sha256(long)}`)
    expect(fromHeader(long)).toBe(`sha256:${sha256(long)}`)
    expect(fromBody({ user: `${long}y` })).not.toBe(fromBody({ user: long }))
  })

  test('has an id in place of a name with control characters, which a header must not hold', () => {
    expect(fromBody({ user: 'a\nb' })).toBe(`sha256:${sha256('a\nb')}`)
    for (const value of ['a\tb', 'a\u0007', '\u0085']) {
      const error = (() => {
        try {
          return fromHeader(value)
        } catch (thrown) {
          return thrown
        }
      })()
      expect(error).toBeInstanceOf(GatewayError)
      expect((error as GatewayError).message).toBe('The header x-gatehouse-user must not hold control characters.')
    }
  })

  test('of a header in UTF-8 is the same as in a body', () => {
    const name = 'Jürgen 東京'
    expect(fromHeader(Buffer.from(name, 'utf8').toString('latin1'))).toBe(fromBody({ user: name }) ?? '')
    expect(fromHeader('J\u00fcrgen')).toBe('Jürgen')
  })

  test('is read from the fields of a form', () => {
    const call: Named = { request_id: 'r' }
    readUserFields(call, undefined, 'f')
    expect(call.end_user).toBe('f')
    readUserFields(call, 'other', 'other')
    expect(call.end_user).toBe('f')
  })
})
