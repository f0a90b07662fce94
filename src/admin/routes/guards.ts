/** The admin API's guards: what each has decided of the newest requests, and what each would do with a text. */
import Type from 'typebox'
import { CallGuards } from '../../calls/guards/call-guards.ts'
import { asks, checksSide, GUARD_OUTCOMES, type Guard } from '../../calls/guards/guard.ts'
import type { Guards } from '../../calls/guards/guards.ts'
import type { Plans } from '../../calls/plan.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { RequestReader } from '../../observe/requests/request-reader.ts'
import type { RequestView } from '../../observe/requests/request-view.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, list, oneOf, orNull, text, titled } from '../../spec/fields.ts'
import { OPERATOR } from '../explain-request.ts'
import { eachNewest, NEWEST_ROWS, REQUEST_FILTERS, readRequestQuery } from './request-query.ts'
import { adminRoute } from './route.ts'

type GuardRouteParts = BodyParts & {
  guards: Pick<Guards, 'all'>
  requests: Pick<RequestReader, 'page'>
  plans: Pick<Plans, 'of'>
  catalogue: Pick<Catalogue, 'find'>
}

const SIDES = ['input', 'output'] as const

const Outcome = Type.Enum([...GUARD_OUTCOMES])
const GuardList = titled('GuardList', {
  object: Type.Literal('guards'),
  data: Type.Array(
    Type.Object({
      name: Type.String(),
      kind: orNull(Type.String(), 'null: it is not in the configuration any more.'),
      mode: orNull(Type.String()),
      on: Type.Array(Type.Enum([...SIDES])),
      outcomes: Type.Array(Type.Object({ on: Type.String(), outcome: Type.String(), requests: Type.Integer() })),
    }),
    { description: 'In the order in which they check.' },
  ),
  requests: Type.Integer({ description: 'How many requests were looked at.' }),
  partial: Type.Boolean({ description: 'The log has more rows than were looked at: numbers may be too small.' }),
})
type GuardRow = Type.Static<typeof GuardList>['data'][number]

const GuardTest = closedObject('GuardTest', {
  text: Type.String({ minLength: 1, maxLength: 100_000 }),
  on: oneOf(SIDES, 'As a text of a request or of an answer. Default input.'),
  guards: list(Type.String(), { minItems: 1, maxItems: 32 }, 'By name. Default: all, or those of `model`.'),
  model: text({ minLength: 1 }, 'Only guards that check calls at this model.'),
})
const GuardTestResult = titled('GuardTestResult', {
  on: Type.Enum([...SIDES]),
  results: Type.Array(
    Type.Object({
      name: Type.String(),
      outcome: orNull(
        Outcome,
        'null: it does not check this side, or asks a model or a service, which is not done here.',
      ),
      text: orNull(Type.String(), 'As it is passed on; null: it is blocked.'),
    }),
    { description: 'Of each guard by itself, in order.' },
  ),
})

export function guardRoutes({ guards, requests, plans, catalogue, ...parts }: GuardRouteParts): Route[] {
  const readTest = bodyReader(GuardTest, parts)

  async function list(context: Context): Promise<Response> {
    const rows = new Map(
      guards.all().map((guard): [string, GuardRow] => {
        const { name, config } = guard
        const on = SIDES.filter((side) => checksSide(guard, side))
        return [name, { name, kind: config.kind, mode: config.mode ?? 'enforce', on, outcomes: [] }]
      }),
    )
    const filter = readRequestQuery(context)
    let seen = 0
    const look = ({ guards = [] }: RequestView) => {
      seen++
      for (const result of guards) count(rows, result)
    }
    const partial = filter !== undefined && (await eachNewest(requests, filter, look))
    return Response.json({ object: 'guards', data: [...rows.values()], requests: seen, partial })
  }

  /** Throws GatewayError for a name that no guard has, and for an unknown model. */
  function chosen(names: readonly string[] | undefined, model: string | undefined): readonly Guard[] {
    const all = guards.all()
    const unknown = names?.find((name) => !all.some((guard) => guard.name === name))
    if (unknown !== undefined) {
      const known = all.length === 0 ? 'there are none' : `known: ${all.map(({ name }) => name).join(', ')}`
      const message = `There is no guard ${JSON.stringify(unknown.slice(0, 100))}; ${known}.`
      throw invalidValue('guards', message)
    }
    const family = model === undefined ? undefined : catalogue.find(model, OPERATOR).supported_endpoint_types[0]
    const ofModel = family && plans.of(OPERATOR, model, family).guards?.guards.map(({ name }) => name)
    return all.filter(
      ({ name }) => (names?.includes(name) ?? true) && (model === undefined || ofModel?.includes(name) === true),
    )
  }

  async function test(context: Context): Promise<Response> {
    const { text, on = 'input', guards: names, model } = await readTest(context)
    const call = { request_id: '', caller: OPERATOR, signal: context.request.signal }
    const results = []
    for (const guard of chosen(names, model)) {
      const { name } = guard
      if (asks(guard) || !checksSide(guard, on)) {
        results.push({ name, outcome: null, text })
        continue
      }
      const checks = new CallGuards([guard], { call, ask: notAsked, results: [] })
      const one = { text }
      const isPassed =
        on === 'input'
          ? await passes(checks.checkInput([one]))
          : await checks.checkOutput([one], () => fitOne(checks, one))
      results.push({ name, outcome: checks.results[0]?.outcome ?? null, text: isPassed ? one.text : null })
    }
    return Response.json({ on, results })
  }

  return [
    adminRoute(['GET', '/admin/v1/guards', 'read'], {
      summary: 'List guards with what they have decided',
      description: `Of the newest ${NEWEST_ROWS} requests that fit the filters.`,
      query: REQUEST_FILTERS,
      response: GuardList,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: list,
    }),
    adminRoute(['POST', '/admin/v1/guards/test', 'operate'], {
      summary: 'Try a text with each guard',
      description: 'Nothing is sent to a provider, and the text is not stored.',
      request: GuardTest,
      response: GuardTestResult,
      errors: ['model_not_found'],
      example: { text: 'Write to ann@example.com', on: 'input' },
      handle: test,
    }),
  ]
}

async function passes(check: Promise<void>): Promise<boolean> {
  try {
    await check
    return true
  } catch (thrown) {
    if (thrown instanceof GatewayError && thrown.code === 'content_blocked') return false
    throw thrown
  }
}

/** Nobody is asked to repair it. */
async function fitOne(checks: CallGuards, one: { text: string }): Promise<{ text: string }[]> {
  one.text = await checks.fitted(one.text)
  return [one]
}

/** Guards with rules or a schema are tried: the others would call a model, which somebody pays, or a service. */
const notAsked = () => Promise.reject(new Error('A guard that asks is not tried.'))

function count(
  rows: Map<string, GuardRow>,
  { name, on, outcome }: { name: string; on: string; outcome: string },
): void {
  const row = rows.get(name) ?? { name, kind: null, mode: null, on: [], outcomes: [] }
  rows.set(name, row)
  const known = row.outcomes.find((one) => one.on === on && one.outcome === outcome)
  if (known) known.requests++
  else row.outcomes.push({ on, outcome, requests: 1 })
}
