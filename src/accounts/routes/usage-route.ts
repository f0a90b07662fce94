/** Returns a token's own usage. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { invalidValue } from '../../spec/error.ts'
import { orNull, text, titled } from '../../spec/fields.ts'
import { nanoText } from '../../spec/price.ts'
import type { LedgerStore, UsageSum } from '../../store/ledger/ledger-store.ts'

const count = Type.Integer({ minimum: 0 })

const UsageList = titled('TokenUsage', {
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      model: Type.Optional(Type.String()),
      day: text('Such as `2026-01-31`, UTC.'),
      requests: count,
      errors: count,
      input_tokens: count,
      output_tokens: count,
      cost: orNull(
        Type.Number(),
        'What the token is charged, in `currency`, without `unknown_requests`; null if no price is known.',
      ),
      unknown_requests: Type.Integer({ description: 'Requests whose price is not known.' }),
      estimated: Type.Integer({ description: 'Requests whose counts are an estimate.' }),
    }),
  ),
  from: Type.Integer({ description: 'Unix seconds.' }),
  to: Type.Integer({ description: 'Unix seconds; not included.' }),
  currency: Type.String(),
})
type UsageList = Type.Static<typeof UsageList>

const DAY_SECONDS = 86_400
const DEFAULT_DAYS = 30
const BY = ['model', 'day'] as const
type By = (typeof BY)[number]

export type UsageRouteParts = {
  ledger: { usage: LedgerStore['usage']; currency(): string }
  clock: Clock
}

export function usageRoutes({ ledger, clock }: UsageRouteParts): Route[] {
  async function usage(context: Context): Promise<Response> {
    const tomorrow = (Math.floor(unixSeconds(clock) / DAY_SECONDS) + 1) * DAY_SECONDS
    const given = context.query()
    const to = readTime(given, 'to') ?? tomorrow
    const from = readTime(given, 'from') ?? Math.max(0, tomorrow - DEFAULT_DAYS * DAY_SECONDS)
    if (from >= to) throw invalidValue('from', '"from" must be before "to".')
    const by = readBy(given)
    const found = await ledger.usage({ by, from, to, token_id: context.caller.token_id })
    return Response.json({
      object: 'list',
      data: found.rows.map((row) => rowOf(row, by)).sort(inOrder),
      from: found.from,
      to: found.to,
      currency: ledger.currency(),
    } satisfies UsageList)
  }

  const time = (description: string) => ({ description, schema: Type.String(), example: '2026-01-31' })
  return [
    {
      method: 'GET',
      path: '/v1/usage',
      operation: {
        summary: 'What this token has used',
        description:
          'Requests, tokens and charges of the token that calls, in the currency of the ledger. Charges appear within a second after a call has ended.',
        tag: 'Gateway',
        query: {
          from: time('A date (UTC) or unix seconds; is included. Default: 30 days.'),
          to: time('A date (UTC) or unix seconds; a date is included. Default: today.'),
          by: {
            description: 'Groups, separated by commas: model, day. Default: none.',
            schema: Type.String(),
            example: 'model,day',
          },
        },
        response: UsageList,
        errors: ['invalid_value', 'storage_unavailable'],
      },
      handle: usage,
    },
  ]
}

function rowOf(sum: UsageSum, by: readonly By[]): UsageList['data'][number] {
  const { requests, errors, input_tokens, output_tokens, estimated, amount, unknown_amounts } = sum
  const isUnknown = amount === 0n && unknown_amounts > 0 && unknown_amounts >= requests
  return {
    ...(by.includes('model') ? { model: sum.model ?? '' } : {}),
    ...(by.includes('day') ? { day: new Date((sum.start ?? 0) * 1000).toISOString().slice(0, 10) } : {}),
    requests,
    errors,
    input_tokens,
    output_tokens,
    cost: isUnknown ? null : Number(nanoText(amount)),
    unknown_requests: unknown_amounts,
    estimated,
  }
}

const keyOf = ({ day = '', model = '' }: UsageList['data'][number]) => `${day} ${model}`
const inOrder = (a: UsageList['data'][number], b: UsageList['data'][number]) => (keyOf(a) < keyOf(b) ? -1 : 1)

/** Unix seconds. A date as `to` is included. */
export function readTime(query: URLSearchParams, param: 'from' | 'to' | 'start' | 'end'): number | undefined {
  const text = query.get(param)
  if (text === null) return undefined
  if (/^\d{1,11}$/.test(text)) return Number(text)
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) / 1000 : Number.NaN
  if (!Number.isNaN(at)) return at + (param === 'to' || param === 'end' ? DAY_SECONDS : 0)
  throw invalidValue(param, `"${param}" must be a date such as 2026-01-31, or unix seconds.`)
}

function readBy(query: URLSearchParams): By[] {
  const names = (query.get('by') ?? '').split(',').filter((name) => name !== '')
  return [...new Set(names)].map((name) => {
    const known = BY.find((one) => one === name)
    if (known) return known
    throw invalidValue('by', `"by" may contain model and day, not ${JSON.stringify(name.slice(0, 40))}.`)
  })
}
