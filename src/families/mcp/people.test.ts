import { expect, it } from 'bun:test'
import type { OidcConfig } from '../../config/schema/admin-schema.ts'
import type { McpLogin } from '../../config/schema/mcp-schema.ts'
import { personOf } from './people.ts'

const A = 'https://login.example.com/realms/a'
const B = 'https://login.example.com/realms/b'
const settings = (oidc: string | undefined, oauth?: string) => ({
  admin: oidc === undefined ? {} : { oidc: { issuer: oidc } as OidcConfig },
  mcp: oauth === undefined ? {} : { oauth: { issuer: oauth } as McpLogin },
})
const server = { oauth_user: { tokens: { tok_a: 'ada' } } }

it('knows a person by the console, by an access token of the same issuer, and by a token of the file', () => {
  const ada = `ada ${A}`
  expect(personOf({ actor: 'oidc:ada' }, settings(A), server)).toBe(ada)
  expect(personOf({ actor: 'oauth:ada@login.example.com' }, settings(A, A), server)).toBe(ada)
  expect(personOf({ actor: 'oauth:ada@x@login.example.com' }, settings(A, A), server)).toBe(`ada@x ${A}`)
  expect(personOf({ token_id: 'tok_a' }, settings(A), server)).toBe(ada)
  // Who has logged in is not whoever has the token.
  expect(personOf({ actor: 'oidc:bob', token_id: 'tok_a' }, settings(A), server)).toBe(`bob ${A}`)
})

it.each([
  ['without admin.oidc', { actor: 'oidc:ada' }, settings(undefined, A)],
  ['of another realm of the same host', { actor: 'oauth:ada@login.example.com' }, settings(A, B)],
  ['of another host', { actor: 'oauth:ada@evil.example.com' }, settings(A, A)],
  ['with a subject that ends as the host does', { actor: 'oauth:@login.example.com' }, settings(A, A)],
  ['of a link of the console', { actor: 'person:ada' }, settings(A, A)],
  ['with an admin token', { actor: 'admin:adm_1' }, settings(A, A)],
  ['with a token that nobody has', { token_id: 'tok_b' }, settings(A, A)],
  ['with the name of a member of every object', { token_id: 'constructor' }, settings(A, A)],
  ['with a subject of two words', { actor: `oidc:ada ${A}` }, settings(B)],
])('knows nobody %s', (_, caller, given) => {
  expect(personOf(caller, given, server)).toBeUndefined()
})
