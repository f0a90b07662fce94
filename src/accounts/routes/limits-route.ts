/** The rate limits and budgets of a token and of its project, and what is left of them, for the token itself. */
import Type from 'typebox'
import type { BudgetState } from '../../calls/budgets/budget-states.ts'
import type { LimitState } from '../../calls/limits/status.ts'
import type { Context, Route } from '../../http/context.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { Budget, RATE_LIMIT_KEYS } from '../../spec/rate-limit.ts'
import type { Caller } from '../../spec/token.ts'

const RateLimitState = titled('RateLimitState', {
  limit: Type.Enum([...RATE_LIMIT_KEYS]),
  amount: Type.Integer({ minimum: 0, description: 'What the limit is set to.' }),
  remaining: Type.Integer({ minimum: 0, description: 'How much may be used now.' }),
  reset_seconds: orNull(
    Type.Number(),
    'Until all of it remains, if nothing more is used; null for concurrent_requests.',
  ),
})
type RateLimitState = Type.Static<typeof RateLimitState>

const BudgetStanding = titled('BudgetState', {
  ...Budget.properties,
  used: Type.Number({ description: 'What was charged in this window.' }),
  credit: Type.Number({ description: 'Credit that was added.' }),
  held: Type.Number({
    description: 'What open calls and unfinished tasks may cost, and what is reserved for the next calls.',
  }),
  remaining: Type.Number({ minimum: 0, description: 'The amount and credit without what is used.' }),
  window_start: Type.Integer({ description: 'Unix seconds.' }),
  window_end: orNull(Type.Integer(), 'Unix seconds; null: it never ends.'),
})

const STATES = {
  rate_limits: Type.Array(RateLimitState),
  budgets: Type.Array(BudgetStanding, { description: 'Amounts are in `currency`.' }),
}
export const TokenLimits = titled('TokenLimits', {
  object: Type.Literal('limits'),
  token_id: Type.String(),
  currency: Type.String(),
  ...STATES,
  project: orNull(Type.Object({ project_id: Type.String(), ...STATES })),
})
type TokenLimits = Type.Static<typeof TokenLimits>

type States = { token: LimitState[]; project: LimitState[] }

export type LimitsRouteParts = {
  limits: {
    rateLimits(caller: Caller): States | Promise<States>
    budgets(caller: Caller): Promise<{ token: BudgetState[]; project: BudgetState[] }>
    currency(): string
  }
}

export async function limitsOf(caller: Caller, { limits }: LimitsRouteParts): Promise<TokenLimits> {
  const [rates, amounts] = await Promise.all([limits.rateLimits(caller), limits.budgets(caller)])
  return {
    object: 'limits',
    token_id: caller.token_id,
    currency: limits.currency(),
    rate_limits: rates.token.map(shown),
    budgets: amounts.token,
    project: caller.project
      ? {
          project_id: caller.project.project_id,
          rate_limits: rates.project.map(shown),
          budgets: amounts.project,
        }
      : null,
  }
}

export function limitsRoutes(parts: LimitsRouteParts): Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/limits',
      operation: {
        summary: 'What is left of the rate limits and budgets of this token and its project',
        description:
          'Those of the token and its project alone; limits of end users, models, providers and the installation may be stricter. What other gateway processes have used of a rate limit is known as of the last exchange with them.',
        tag: 'Gateway',
        response: TokenLimits,
        errors: ['storage_unavailable'],
      },
      handle: async ({ caller }: Context) => Response.json(await limitsOf(caller, parts)),
    },
  ]
}

const shown = ({ limit, amount, remaining, reset_ms }: LimitState): RateLimitState => ({
  limit,
  amount,
  remaining,
  reset_seconds: reset_ms === undefined ? null : Math.ceil(reset_ms) / 1000,
})
