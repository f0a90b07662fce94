import { expect, it } from 'bun:test'
import type { FileConfig } from '../schema/schema.ts'
import { checkDeclared } from './declared-checks.ts'
import { violationsOf } from './problem.ts'
import { checkValues } from './value-checks.ts'

const secret = 'sk-0123456789abcdefghij'
const problemsOf = (config: FileConfig) =>
  violationsOf((report) => {
    checkValues({ config, vendors: undefined, discover: undefined, now: 0 }, report)
    checkDeclared(config, report)
  }).map(({ path, message }) => `${path.join('.')}: ${message}`)

it('projects and tokens of the file are right where names, secrets, patterns and budgets are', () => {
  expect(problemsOf({})).toEqual([])
  expect(
    problemsOf({
      projects: { search: { models: ['a/*'], budgets: [{ amount: 1, window: 'month' }] } },
      api_tokens: { ci: { secret, project: 'search' }, other: { secret: `${secret}x` } },
    }),
  ).toEqual([])
})

it('each mistake is named with its place', () => {
  expect(
    problemsOf({
      projects: {
        search: {
          models: ['a', ''],
          budgets: [
            { amount: 1, window: 'month' },
            { amount: 2, window: 'month' },
          ],
        },
      },
      api_tokens: {
        ci: { secret, project: 'serach' },
        twin: { secret },
        spaced: { secret: 'sk-0123456789 abcdefghij' },
      },
    }),
  ).toEqual([
    expect.stringContaining('projects.search.models.1: found an empty pattern'),
    expect.stringContaining('projects.search.budgets.1'),
    'api_tokens.ci.project: found "serach", which is not a key of projects; did you mean "search"?',
    'api_tokens.twin.secret: is that of api_tokens.ci as well',
    'api_tokens.spaced.secret: must have 20 to 512 visible ASCII characters and no spaces',
  ])
})

it('admin tokens are bound to a project where, and only where, their role is project_admin', () => {
  const projects = { search: {} }
  const other = `${secret}-other`
  expect(
    problemsOf({
      projects,
      admin_tokens: {
        lead: { role: 'project_admin', project: 'search', secret },
        viewer: { role: 'viewer', secret: other },
      },
    }),
  ).toEqual([])
  expect(
    problemsOf({
      projects,
      api_tokens: { ci: { secret } },
      admin_tokens: {
        lead: { role: 'project_admin', secret },
        viewer: { role: 'viewer', project: 'serach', secret: 'short' },
      },
    }),
  ).toEqual([
    'admin_tokens.lead.secret: is that of api_tokens.ci as well',
    'admin_tokens.viewer.secret: must have 20 to 512 visible ASCII characters and no spaces',
    'admin_tokens.viewer.project: found "serach", which is not a key of projects; did you mean "search"?',
    'admin_tokens.lead.project: is needed: a project_admin is bound to a project',
    'admin_tokens.viewer.project: is of a project_admin or project_member only; viewer is of the whole installation',
  ])
})
