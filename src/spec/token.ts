/** API tokens and projects: the caller, and what it may use (specification, section 5). */
import Type from 'typebox'
import { type EndUserLimits, GIVEN_SETTINGS, SHOWN_SETTINGS } from './account-settings.ts'
import type { CallFamily } from './endpoint-family.ts'
import { closedObject, flag, orNull, text, titled } from './fields.ts'
import type { Budget, RateLimits } from './rate-limit.ts'

/** What an operator sets for a token, and for a project. Times are unix seconds. */
const SETTINGS = {
  name: Type.String(),
  ...SHOWN_SETTINGS,
  disabled: Type.Boolean(),
  declared: flag('It is in the configuration file, and can be changed there only.'),
  created_at: Type.Integer(),
}

/** A token as it is stored and shown: everything except the secret. */
export const Token = titled('Token', {
  token_id: Type.String({ description: '`tok_` and 16 alphanumerics.' }),
  project_id: orNull(Type.String(), 'The project that owns it.'),
  prefix: Type.String({ description: 'The first characters of the secret, to recognise it by.' }),
  previous_expires_at: orNull(
    Type.Integer(),
    'Until when the secret before the last rotation is valid; null: there is none.',
  ),
  ...SETTINGS,
  last_used_at: orNull(Type.Integer()),
  playground: text('The person who calls models with it in the playground; it has no secret.'),
})
export type Token = Type.Static<typeof Token>

/** What can be set for a token and for a project. */
const SETTABLE = {
  name: Type.String({ description: '1 to 100 characters.' }),
  ...GIVEN_SETTINGS,
}
const CHANGE = { ...SETTABLE, name: Type.Optional(SETTABLE.name) }

export const LOG_CONTENTS = ['on', 'off', 'header'] as const
export type LogContents = (typeof LOG_CONTENTS)[number]
const LogContents = orNull(
  Type.Enum([...LOG_CONTENTS]),
  'Whether prompts and responses of its tokens are recorded: `on`, `off`, or as each request says with the header x-gatehouse-log-contents. null: as the configuration says.',
)
const PROJECT_FIELDS = { log_contents: Type.Optional(LogContents) }

const PROJECT_ID = Type.Optional(orNull(Type.String(), 'The project that owns it.'))
export const TokenOrder = closedObject('TokenOrder', { ...SETTABLE, project_id: PROJECT_ID })
export const TokenChange = closedObject('TokenChange', { ...CHANGE, project_id: PROJECT_ID })
export const ProjectOrder = closedObject('ProjectOrder', { ...SETTABLE, ...PROJECT_FIELDS })
export const ProjectChange = closedObject('ProjectChange', {
  ...CHANGE,
  ...PROJECT_FIELDS,
  disabled: flag('Its tokens are refused while it is true.'),
})
export type ProjectChange = Type.Static<typeof ProjectChange>

/** A team or an application. It owns tokens, and what it may not do, none of them may. */
export const Project = titled('Project', {
  project_id: Type.String({ description: '`proj_` and 16 alphanumerics.' }),
  ...SETTINGS,
  log_contents: LogContents,
})
export type Project = Type.Static<typeof Project>

/** Limits and guards of a token or of a project. Absent: it has none of its own. */
export type AccountLimits = {
  rate_limits?: RateLimits
  budgets?: readonly Budget[]
  /** Of each of its end users. */
  end_users?: EndUserLimits
  /** Their names. */
  guards?: readonly string[]
}

/** The caller of a request, as far as other modules need to know it. */
export type Caller = AccountLimits & {
  token_id: string
  name?: string
  project_id?: string
  /** The project that owns the token. Its limits count too. */
  project?: CallerProject
  /** Which of two callers of one token or project was read later: the one with the greater number. Absent: 0. */
  as_of?: number
  /** The person who calls, where the call is one of the playground. */
  playground?: string
  /** It asks on behalf of a guard, so that no guard checks its calls. */
  is_unguarded?: true
  /** Limited to some models or some families. */
  is_limited?: boolean
  mayUseModel(id: string): boolean
  mayUseFamily(family: CallFamily): boolean
}

type CallerProject = AccountLimits & { project_id: string; name: string; log_contents?: LogContents }

/** The usage of one caller with one model in one hour. */
export type UsageRow = {
  token_id: string
  model: string
  /** The start of the hour in unix seconds. */
  hour: number
  requests: number
  errors: number
  input_tokens: number
  output_tokens: number
  /** The number of requests whose tokens are an estimate. */
  estimated: number
}
