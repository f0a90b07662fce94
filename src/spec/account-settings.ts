/**
 * Every setting that tokens and projects have in common, one row each: the admin API, the configuration file, the store and
 * the defaults follow from it.
 */
import Type, { type Static, type TSchema } from 'typebox'
import { CallFamily } from './endpoint-family.ts'
import { closedObject, LATEST_TIME, orNull } from './fields.ts'
import { mark } from './marks.ts'
import { Budget, RateLimits } from './rate-limit.ts'

/** With the keys in its type. */
const Limits = Type.Unsafe<RateLimits>(RateLimits)

/** What is limited for each end user of a token, or of a project. */
export const EndUserLimits = closedObject('EndUserLimits', {
  rate_limits: Type.Optional(Limits),
  budgets: Type.Optional(Type.Array(Budget)),
})
export type EndUserLimits = Static<typeof EndUserLimits>

const closed = { additionalProperties: false } as const
/** Without the name of a component, since in requests `null` stands for an absent member. */
const BUDGETS = Type.Array(Type.Object(Budget.properties, closed))

type Row = {
  /** As the API shows it. */
  shown: TSchema
  /** As a request gives it. */
  given: TSchema
  /** As the configuration file has it; what `config/` describes itself is absent. */
  in_file?: TSchema
  /** What it is where it is not set. */
  unset: unknown
  /** Whether it is JSON text in its column, which has its name. */
  is_json: boolean
}

/** In the file. */
const shownTexts = (description: string) => Type.Array(Type.String(), { ...mark.shown, description })

const labels = Type.Record(Type.String(), Type.String(), {
  ...mark.shown,
  description: 'For the operator; they change nothing.',
})
const models = Type.Array(Type.String(), { description: 'Glob patterns of the model ids it may use; `*` is all.' })
const families = orNull(Type.Array(CallFamily), 'null is every family.')
const allowed_addresses = orNull(Type.Array(Type.String()), 'CIDR ranges of client addresses; null is every address.')
const guards = Type.Array(Type.String(), {
  description: 'Names of guards that check its calls, besides those of the model and of its project.',
})
const expires_at = orNull(Type.Integer())

/** Times are unix seconds. */
export const ACCOUNT_SETTINGS = {
  labels: { shown: labels, given: labels, in_file: labels, unset: {}, is_json: true },
  models: {
    shown: models,
    given: models,
    in_file: shownTexts('The models that it may use, as glob patterns. Default: all.'),
    unset: ['*'],
    is_json: true,
  },
  families: {
    shown: families,
    given: families,
    in_file: Type.Array(CallFamily, { description: 'The families that it may use. Default: all.' }),
    unset: null,
    is_json: true,
  },
  rate_limits: { shown: Limits, given: Limits, unset: {}, is_json: true },
  budgets: { shown: Type.Array(Budget), given: BUDGETS, unset: [], is_json: true },
  end_users: {
    shown: EndUserLimits,
    given: Type.Object({ rate_limits: Type.Optional(Limits), budgets: Type.Optional(BUDGETS) }, closed),
    unset: {},
    is_json: true,
  },
  allowed_addresses: {
    shown: allowed_addresses,
    given: allowed_addresses,
    in_file: shownTexts('CIDR ranges of client addresses. Default: every address.'),
    unset: null,
    is_json: true,
  },
  guards: {
    shown: guards,
    given: guards,
    in_file: shownTexts('Names of guards in `guards` that check its calls. Default: none.'),
    unset: [],
    is_json: true,
  },
  expires_at: {
    shown: expires_at,
    given: expires_at,
    in_file: Type.Integer({ minimum: 1, maximum: LATEST_TIME, description: 'Unix seconds. Default: never.' }),
    unset: null,
    is_json: false,
  },
} as const satisfies Record<string, Row>

type Rows = typeof ACCOUNT_SETTINGS
export type AccountSettingName = keyof Rows
/** The settings as they are stored and shown. */
export type AccountValues = { [Name in AccountSettingName]: Static<Rows[Name]['shown']> }

export const ACCOUNT_SETTING_NAMES = Object.keys(ACCOUNT_SETTINGS) as AccountSettingName[]

function eachRow<Result>(of: (row: Row) => unknown): Result {
  const rows: [string, Row][] = Object.entries(ACCOUNT_SETTINGS)
  return Object.fromEntries(
    rows.map(([name, row]) => [name, of(row)] as const).filter(([, value]) => value !== undefined),
  ) as Result
}

/** The members of a token, and of a project. */
export const SHOWN_SETTINGS = eachRow<{ [Name in AccountSettingName]: Rows[Name]['shown'] }>(({ shown }) => shown)

/** The members of a request. */
export const GIVEN_SETTINGS = eachRow<{ [Name in AccountSettingName]: Type.TOptional<Rows[Name]['given']> }>(
  ({ given }) => Type.Optional(given),
)

type InFile = { [Name in AccountSettingName as Rows[Name] extends { in_file: TSchema } ? Name : never]: Rows[Name] }
/** The members in the configuration file. */
export const FILE_SETTINGS = eachRow<{
  [Name in keyof InFile]: Type.TOptional<
    InFile[Name] extends { in_file: infer Schema extends TSchema } ? Schema : never
  >
}>(({ in_file }) => in_file && Type.Optional(in_file))

/** Each setting where it is not set. */
export const UNSET_SETTINGS = eachRow<AccountValues>(({ unset }) => unset)
