/** Checks of `admin.oidc`. */
import { describe, expect, test } from 'bun:test'
import { loadConfig } from '../load/load.ts'
import { ConfigError } from './problem.ts'

const OIDC = {
  issuer: 'https://login.example.com',
  client_id: 'gatehouse',
  client_secret: 'a-secret',
  role_claim: 'groups',
  roles: { admins: { role: 'owner' } } as object,
}

function problemsOf(oidc: object): string[] {
  try {
    const readFile = () => JSON.stringify({ admin: { oidc } })
    loadConfig({ environment: { GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', readFile })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, message }) => `${path}: ${message}`)
  }
}

describe('admin.oidc', () => {
  test('is accepted with what it needs', () => {
    const project_admin = { role: 'project_admin', project: 'prj_1' }
    expect(problemsOf(OIDC)).toEqual([])
    expect(problemsOf({ ...OIDC, issuer: 'http://127.0.0.1:9000', roles: { a: project_admin } })).toEqual([])
  })

  const refused: [string, object, string][] = [
    ['without an issuer', { ...OIDC, issuer: undefined }, 'admin.oidc.issuer: is missing, but required'],
    ['with http elsewhere', { ...OIDC, issuer: 'http://login.example.com' }, 'must begin with https://'],
    ['with a password in the issuer', { ...OIDC, issuer: 'https://a:b@login.example.com' }, 'contains a user name'],
    ['with a query in the issuer', { ...OIDC, issuer: 'https://login.example.com/?a' }, 'contains a query'],
    ['without roles', { ...OIDC, roles: {} }, 'admin.oidc.roles: is empty'],
    ['with an unknown role', { ...OIDC, roles: { a: { role: 'admin' } } }, 'admin.oidc.roles.a.role'],
    ['with a project_admin of no project', { ...OIDC, roles: { a: { role: 'project_admin' } } }, 'without `project`'],
    ['with an owner of a project', { ...OIDC, roles: { a: { role: 'owner', project: 'p' } } }, 'must be absent'],
    ['with another return address', { ...OIDC, redirect_uri: 'https://a.example/x' }, 'admin.oidc.redirect_uri'],
  ]
  for (const [name, oidc, message] of refused) {
    test(`is refused ${name}`, () => {
      const problems = problemsOf(oidc)
      expect(problems).toHaveLength(1)
      expect(problems[0]).toContain(message)
    })
  }

  test('does not show its secret in a message', () => {
    expect(problemsOf({ ...OIDC, client_secret: ['the-secret'] }).join()).not.toContain('the-secret')
    expect(problemsOf({ ...OIDC, client_secret: 12_345_678 }).join()).not.toContain('12345678')
  })
})
