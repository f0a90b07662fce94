/** Projects and API tokens in the configuration file. */
import Type from 'typebox'
import { FILE_SETTINGS } from '../../spec/account-settings.ts'
import { ADMIN_ROLES } from '../../spec/admin.ts'
import { flag, integer, LATEST_TIME, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { LOG_CONTENTS } from '../../spec/token.ts'
import { budgets } from './account-schema.ts'
import { rateLimits } from './rate-limit-schema.ts'

const { labels, models, families, ...others } = FILE_SETTINGS
const SETTINGS = {
  labels,
  models,
  families,
  rate_limits: rateLimits('What it may use.'),
  budgets: budgets('Its budgets, one for each window.'),
  end_users: optional(
    section(
      { rate_limits: rateLimits('What each end user may use.'), budgets: budgets('Budgets of each end user.') },
      'For each of its end users.',
    ),
  ),
  ...others,
}

const DeclaredProject = section({
  ...SETTINGS,
  disabled: flag('Its tokens are refused while it is true. Default false.'),
  log_contents: oneOf(LOG_CONTENTS, 'Record contents; header: as each request says. Default: by request_log.contents.'),
})
export type DeclaredProject = Type.Static<typeof DeclaredProject>

const DeclaredToken = section({
  secret: required({ ...mark.secret, minLength: 1 }, 'What clients send: 20 to 512 visible ASCII characters.'),
  project: text(mark.shown, 'A key of `projects`: the project that owns it. Default: none.'),
  ...SETTINGS,
})
export type DeclaredToken = Type.Static<typeof DeclaredToken>

const DeclaredAdminToken = section({
  secret: required({ ...mark.secret, minLength: 1 }, 'What administrators send: 20 to 512 visible ASCII characters.'),
  role: Type.Enum([...ADMIN_ROLES], { description: 'What it may do.' }),
  project: text(mark.shown, 'A key of `projects`, of a project_admin or project_member.'),
  expires_at: integer({ minimum: 1, maximum: LATEST_TIME }, 'Unix seconds. Default: never.'),
})
export type DeclaredAdminToken = Type.Static<typeof DeclaredAdminToken>

const NAME = '^\\S(.{0,98}\\S)?$'

export const DeclaredProjects = Type.Record(Type.String({ pattern: NAME }), DeclaredProject, {
  description:
    'Projects by name. They are created at the start and at a reload, and can be changed here only. One that leaves the file stays, and can be changed by the API.',
})
export const DeclaredTokens = Type.Record(Type.String({ pattern: NAME }), DeclaredToken, {
  description:
    'API tokens by name. They are created at the start and at a reload, and can be changed here only. One that leaves the file is revoked.',
})
export const DeclaredAdminTokens = Type.Record(Type.String({ pattern: NAME }), DeclaredAdminToken, {
  description:
    'Admin tokens by name, as API tokens. Another secret is another token. One that leaves the file is revoked.',
})
