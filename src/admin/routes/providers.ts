/** The admin API's providers: their keys, limits and health, a test call, and the reset of their breakers. */
import Type from 'typebox'
import type { LiveOverrides } from '../../calls/routing/live-overrides.ts'
import type { Router } from '../../calls/routing/router.ts'
import { stateId } from '../../calls/routing/target-state.ts'
import { shownValue } from '../../config/edit/masking.ts'
import { type BodyParts, optionalBodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import type { Found, Supplied, Supply } from '../../models/supply.ts'
import { PROVIDER_REPORT, type ProviderReport } from '../../providers/ask-provider.ts'
import { closedObject, orNull, text, titled } from '../../spec/fields.ts'
import type { Audit } from '../audit/audit.ts'
import { noSuch, originOf, present } from './edit.ts'
import { listRoute, pageOfAll } from './list.ts'
import { adminRoute } from './route.ts'
import { SettingSchema, type SettingsOf } from './settings-schema.ts'

type ProviderRouteParts = BodyParts & {
  supply: Pick<Supply, 'providers' | 'find' | 'models'>
  router: Pick<Router, 'reset'>
  overrides: LiveOverrides
  settingsOf: SettingsOf
  audit: Pick<Audit, 'around'>
  /** Asks a provider with one of its keys for its list of models. */
  testProvider(id: string, key: string | undefined): Promise<ProviderReport>
}

const state = orNull(Type.String({ description: '`drained` or `disabled` by a runtime override; null: neither.' }))

const ProviderFields = {
  id: Type.String(),
  kind: Type.String(),
  found_by: Type.String({ description: '`file`, `built in`, `environment` or `loopback`.' }),
  address: orNull(Type.String({ description: 'Scheme, host and port.' })),
  models: Type.Integer({ description: 'How many models it serves.' }),
  is_list_failing: Type.Boolean({ description: 'Its list of models could not be read.' }),
  state,
  active_health: orNull(Type.String({ description: '`healthy` or `unhealthy`; null: it is not probed.' })),
  keys: Type.Array(
    Type.Object({
      name: Type.String(),
      weight: Type.Number({ description: 'Relative to the other keys, with what is overridden.' }),
      models: orNull(Type.Array(Type.String(), { description: 'Patterns of the models that it may call.' })),
      state,
    }),
    { description: 'Empty where it has only one key. Keys are named, and never shown.' },
  ),
}
const AdminProvider = titled('AdminProvider', ProviderFields)
const AdminProviderWithSettings = titled('AdminProviderWithSettings', {
  ...ProviderFields,
  settings: Type.Array(SettingSchema),
})

const TestOrder = closedObject('ProviderTest', { key: text('The name of one of its keys. Default: the first.') })
const TestResult = titled('ProviderTestResult', PROVIDER_REPORT)
const ResetOrder = closedObject('BreakerReset', {
  target: text('Only this one: `provider/model`, or `provider/model#key`.'),
})
const ResetResult = titled('BreakerResetResult', {
  reset: Type.Integer({ description: 'How many targets were known, and are forgotten.' }),
})

const ROOT = '/admin/v1/providers'
const ONE = `${ROOT}/:provider`
const params = { provider: 'The id of a provider.' }

export function adminProviderRoutes(parts: ProviderRouteParts): Route[] {
  const { supply, router, overrides, settingsOf, audit, testProvider } = parts
  const readTest = optionalBodyReader(TestOrder, parts)
  const readReset = optionalBodyReader(ResetOrder, parts)

  function view(found: Found) {
    const supplied = supply.find(found.id)
    return {
      id: found.id,
      kind: found.kind,
      found_by: found.found_by,
      address: addressOf(found.id, supplied),
      models: found.models,
      is_list_failing: found.is_failing ?? false,
      state: stateOf('provider', found.id),
      active_health: healthOf(supplied),
      keys: (supplied?.keys ?? []).map(({ name, weight, models }) => ({
        name,
        weight: rowOf('key', `${found.id}#${name}`)?.weight ?? weight,
        models: models ? [...models] : null,
        state: stateOf('key', `${found.id}#${name}`),
      })),
    }
  }

  const rowOf = (kind: 'provider' | 'key', name: string) =>
    overrides.list().find((row) => row.kind === kind && row.name === name)
  const stateOf = (kind: 'provider' | 'key', name: string) => rowOf(kind, name)?.state ?? null

  const found = ({ params: { provider = '' } }: Context) =>
    present(
      supply.providers().find(({ id }) => id === provider),
      'provider',
      provider,
    )

  function list(context: Context): Promise<Response> {
    const all = supply.providers().sort((a, b) => (a.id < b.id ? -1 : 1))
    return pageOfAll(context, all, { view, placeOf: ({ id }) => id })
  }

  async function test(context: Context): Promise<Response> {
    const { id } = found(context)
    const { key } = await readTest(context)
    const { keys = [] } = supply.find(id) ?? {}
    if (key !== undefined && !keys.some(({ name }) => name === key)) throw noSuch(`key of ${id}`, key)
    return Response.json(await testProvider(id, key))
  }

  async function reset(context: Context): Promise<Response> {
    const { id } = found(context)
    const { target } = await readReset(context)
    const own = supply
      .models()
      .flatMap(({ targets }) => targets)
      .filter(({ provider }) => provider.id === id)
    const ids = new Set(own.map(stateId))
    if (target !== undefined && !ids.has(target)) throw noSuch(`target of ${id}`, target)
    const requested = target === undefined ? [...ids] : [target]
    const after = { target: target ?? null }
    const event = { ...originOf(context), action: 'breaker.reset', object_type: 'provider', object_id: id, after }
    const reset = await audit.around(event, () => {
      const count = requested.reduce((sum, one) => sum + router.reset(one), 0)
      return { result: count, after: { ...after, reset: count } }
    })
    return Response.json({ reset })
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'List providers with their keys',
      description: 'Those of the file and those that were discovered, by id. Health is what this process knows.',
      of: [AdminProvider, 'AdminProviderList'],
      handle: list,
    }),
    adminRoute(['GET', ONE, 'read'], {
      summary: 'A provider with its keys',
      description: 'With its settings and where each of them comes from. Its targets are at `/admin/v1/models`.',
      params,
      response: AdminProviderWithSettings,
      handle(context) {
        const known = found(context)
        return Response.json({ ...view(known), settings: settingsOf(['providers', known.id]) })
      },
    }),
    adminRoute(['POST', `${ONE}/test`, 'operate'], {
      summary: 'Test a provider or one of its keys',
      description:
        'Asks it for its list of models, which costs nothing, as `gatehouse check --online` does. Takes 10 seconds at most.',
      params,
      request: TestOrder,
      body_optional: true,
      response: TestResult,
      example: {},
      handle: test,
    }),
    adminRoute(['POST', `${ONE}/reset`, 'operate'], {
      summary: 'Reset the breakers of a provider',
      description:
        'Forgets what this process knows of its targets, or of one: ejections, cooldowns, refused keys, latency. Open calls and runtime overrides stay.',
      params,
      request: ResetOrder,
      body_optional: true,
      response: ResetResult,
      example: {},
      handle: reset,
    }),
  ]
}

function addressOf(id: string, supplied: Supplied | undefined): string | null {
  const { base_url } = supplied?.config ?? {}
  return base_url === undefined ? null : String(shownValue(['providers', id, 'base_url'], base_url))
}

function healthOf(supplied: Supplied | undefined): string | null {
  const health = supplied?.provider.health?.()
  if (!health) return null
  return health.is_unhealthy ? 'unhealthy' : 'healthy'
}
