/** Schema of the settings of tokens and their calls: defaults of tokens, storage quotas and budgets. */
import Type from 'typebox'
import { EndpointFamily } from '../../spec/endpoint-family.ts'
import { integer, list, number, oneOf, optional, section } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { Budget } from '../../spec/rate-limit.ts'
import { rateLimits } from './rate-limit-schema.ts'

const MOST_BUDGETS = 20

export const budgets = (description: string) => list(Budget, { maxItems: MOST_BUDGETS }, description)

const HOLDS = ['most', 'likely'] as const

/** Of the installation: a list, or the list beside what calls hold of all budgets. */
export const InstallationBudgets = Type.Union([
  Type.Array(Budget, { maxItems: MOST_BUDGETS, description: 'Budgets of all calls together.' }),
  section({
    hold: oneOf(
      HOLDS,
      'What an open call holds of its budgets. most: the most that it can cost; likely: with the 99th percentile of the output of token and model. Default most.',
    ),
    installation: budgets('Budgets of all calls together.'),
  }),
])
export type InstallationBudgets = Type.Static<typeof InstallationBudgets>

export const isBudgetList = (budgets: InstallationBudgets): budgets is Budget[] => Array.isArray(budgets)

const quota = (description: string) => integer({ minimum: 1 }, description)

const StorageQuotas = section(
  {
    response_bytes: quota('Bytes of stored responses and conversations. Default 1,073,741,824 (1 GiB).'),
    response_rows: quota('Stored responses, conversations and items. Default 200,000.'),
    task_bytes: quota(
      'Bytes of requests of tasks within outputs.keep_days, and inputs of unfinished ones. Default 268,435,456 (256 MiB).',
    ),
    unfinished_tasks: quota('Unfinished tasks. Default 10,000.'),
    files: quota('Uploaded files, and files written for the token. Default 10,000.'),
    file_bytes: quota('Bytes of these files. Default 10737418240 (10 GiB).'),
    idempotency_keys: quota('Idempotency keys of the last 24 hours. Default 10,000.'),
  },
  'What each token may store, new or not.',
)
export type StorageQuotas = Type.Static<typeof StorageQuotas>

export const TokenDefaults = section({
  models: list(Type.String(), mark.shown, 'Of new tokens, as glob patterns. Default: ["*"].'),
  families: list(EndpointFamily, 'Of new tokens. Default: all.'),
  expires_after_days: number(
    { exclusiveMinimum: 0, maximum: 36_500 },
    'Days after which new tokens expire. Default: never.',
  ),
  storage: optional(StorageQuotas),
  rate_limits: rateLimits('Of each token without its own.'),
  budgets: budgets('Of each token without its own.'),
  end_users: optional(
    section(
      { rate_limits: rateLimits('What each end user may use.'), budgets: budgets('Budgets of each end user.') },
      'Of each end user of a token without its own.',
    ),
  ),
})
export type TokenDefaults = Type.Static<typeof TokenDefaults>
