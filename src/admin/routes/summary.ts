/** The admin API's summaries for charts. */
import Type from 'typebox'
import { readTime } from '../../accounts/routes/usage-route.ts'
import type { Context, Route } from '../../http/context.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { endUserName } from '../../kit/end-user-name.ts'
import {
  noSummary,
  SUMMARY_ORDERS,
  SUMMARY_SUMS,
  type Summaries,
  type SummaryQuery,
} from '../../observe/requests/summaries.ts'
import { invalidValue } from '../../spec/error.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import { SUM_STEPS, type SumStep } from '../../store/requests/request-sums.ts'
import { SUM_DIMENSIONS, type SumDimension } from '../../store/requests/sum-row.ts'
import { type NamedAccounts, nameOf } from './account-names.ts'
import { readInteger, readOneOf } from './list.ts'
import { adminRoute } from './route.ts'

type SummaryRouteParts = { summaries: Summaries; named: NamedAccounts; clock: Clock }

const DEFAULT_SERIES = 10
const MAX_SERIES = 50
/** Of one series. */
const MAX_POINTS = 1_500
const MAX_CHARACTERS = 512
const DAY = SUM_STEPS.day
const BY = [...SUM_DIMENSIONS, 'none'] as const
const POINTS = ['true', 'false'] as const
const STEPS = Object.keys(SUM_STEPS) as SumStep[]

const SummarySeries = titled('SummarySeries', {
  key: orNull(
    Type.String(),
    'The id, or the name of the end user or tag; null: all calls, or the rest. Empty: the calls have none.',
  ),
  name: Type.String({
    description: 'The name of the token or project; otherwise the key, `all`, `other` or `(none)`.',
  }),
  points: Type.Array(
    Type.Object({ time: Type.Integer({ description: 'Unix seconds: the start of the step (UTC).' }), ...SUMMARY_SUMS }),
    { description: 'In the order of time. Steps without calls have none; none at all where `points` is false.' },
  ),
  total: Type.Object(SUMMARY_SUMS),
})
const Summary = titled('Summary', {
  object: Type.Literal('summary'),
  start: Type.Integer({ description: 'Unix seconds: the time covered, in whole steps; included.' }),
  end: Type.Integer({ description: 'The same; not included.' }),
  step: Type.Enum(STEPS, { description: 'Longer than asked for where the shorter sums were deleted.' }),
  by: Type.Enum([...BY]),
  series: Type.Array(SummarySeries, { description: 'The largest first.' }),
  other: Type.Boolean({ description: 'Whether the last series is that of all other keys. By tag there is none.' }),
  total: Type.Object(SUMMARY_SUMS, { description: 'Of all calls that match the filters.' }),
})

export function summaryRoutes({ summaries, named, clock }: SummaryRouteParts): Route[] {
  async function summary(context: Context): Promise<Response> {
    const query = context.query()
    const asked = readQuery(query, unixSeconds(clock) + 1)
    const own = context.admin.project_id
    const found = own === undefined ? await summaries.read(asked) : await readOwn(asked, own)
    const { from, to, step, series, other, total } = found
    const names = await Promise.all(series.map(({ key }) => labelOf(key, asked.by)))
    const labelled = series.map(({ key, ...rest }, at) => ({ key, name: names[at] ?? '', ...rest }))
    const range = { start: from, end: to, step, by: asked.by }
    return Response.json({ object: 'summary', ...range, series: labelled, other, total })
  }

  /** Of one project. The sums of a token are shown to the project that has it. */
  async function readOwn(asked: SummaryQuery, own: string) {
    const { filter } = asked
    const isForeign = filter.project !== undefined && filter.project !== own
    const token = filter.token === undefined ? undefined : await named.tokens.find(filter.token)
    const isForeignToken = filter.token !== undefined && token?.project_id !== own
    if (isForeign || isForeignToken) return noSummary(asked)
    const isByPart = filter.token !== undefined && asked.by !== 'none' && asked.by !== 'token' && asked.by !== 'project'
    const { project: _, ...others } = filter
    return summaries.read({ ...asked, filter: isByPart ? others : { ...others, project: own } })
  }

  async function labelOf(key: string | null, by: SumDimension | 'none'): Promise<string> {
    if (key === null) return by === 'none' ? 'all' : 'other'
    if (key === '') return '(none)'
    return by === 'token' || by === 'project' ? nameOf(named, by, key) : key
  }

  const time = (description: string) => ({ description, schema: Type.String(), example: '2026-01-31' })
  return [
    adminRoute(['GET', '/admin/v1/summary', { right: 'read', project: 'own' }], {
      summary: 'Sums of requests for charts',
      description:
        'Calls, errors, tokens, amounts and durations by minute, hour or day, for the largest keys of one dimension and the rest. They are kept while calls are recorded in the request log, so no rows of it are read. A call counts at its arrival. A project_admin sees that of its project.',
      query: {
        start: time('A date (UTC) or unix seconds; is included. Default: a day before the end.'),
        end: time('A date (UTC) or unix seconds; a date is included. Default: now.'),
        from: time('The same as start.'),
        to: time('The same as end.'),
        step: parameter('Default: minute up to six hours, hour up to eight days, then day.', Type.Enum(STEPS)),
        by: parameter(
          'One series for each value. Default: none. A filter allows only these: `project`: by token, model, provider, user or tag; `token`: by project or model; `model`: by project, token or provider; `provider`: by project or model; `user` and `tag`: by project.',
          Type.Enum([...BY]),
        ),
        project: parameter('Only this project. With a second filter, `by` must be none.'),
        token: parameter('Only this token.'),
        model: parameter('Only this model, by its full id.'),
        provider: parameter('Only this provider.'),
        user: parameter('Only this end user.'),
        tag: parameter('Only this tag, or pair of metadata as key:value.'),
        order: parameter('By what the largest are chosen. Default: calls.', Type.Enum([...SUMMARY_ORDERS])),
        points: parameter(
          'Whether the series have their points, or only their totals. Default: true.',
          Type.Enum([...POINTS]),
        ),
        limit: parameter(
          `Series, besides that of the rest. Default ${DEFAULT_SERIES}.`,
          Type.Integer({ minimum: 1, maximum: MAX_SERIES }),
        ),
      },
      response: Summary,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: summary,
    }),
  ]
}

/** Throws invalid_value. */
function readQuery(query: URLSearchParams, now: number): SummaryQuery {
  const to = timeOf(query, ['end', 'to']) ?? now
  const from = timeOf(query, ['start', 'from']) ?? Math.max(0, to - DAY)
  if (from >= to) throw invalidValue('start', '"start" must be before "end".')
  const length = to - from
  const usual = length <= DAY / 4 ? 'minute' : length <= 8 * DAY ? 'hour' : 'day'
  const step = readOneOf(query, 'step', STEPS) ?? usual
  if (length / SUM_STEPS[step] > MAX_POINTS)
    throw invalidValue('step', `More than ${MAX_POINTS} steps: ask for a longer step or a shorter time.`)
  const filter: SummaryQuery['filter'] = {}
  for (const name of SUM_DIMENSIONS) {
    const value = query.get(name)
    if (value === null) continue
    if (value === '' || (value.length > MAX_CHARACTERS && name !== 'user'))
      throw invalidValue(name, `"${name}" must have 1 to ${MAX_CHARACTERS} characters.`)
    filter[name] = name === 'user' ? (endUserName(value) ?? value) : value
  }
  return {
    from,
    to,
    step,
    by: readOneOf(query, 'by', BY) ?? 'none',
    filter,
    limit: readInteger(query, 'limit', MAX_SERIES) ?? DEFAULT_SERIES,
    points: readOneOf(query, 'points', POINTS) !== 'false',
    order: readOneOf(query, 'order', SUMMARY_ORDERS) ?? 'calls',
  }
}

/** Both names are those of other lists. */
function timeOf(query: URLSearchParams, [name, other]: readonly ['start', 'from'] | readonly ['end', 'to']) {
  if (query.has(name) && query.has(other)) throw invalidValue(name, `"${name}" and "${other}" are the same: give one.`)
  return readTime(query, query.has(name) ? name : other)
}
