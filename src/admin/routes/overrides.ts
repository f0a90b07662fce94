/** The admin API's runtime overrides: weight, drain and disable of providers, keys, targets and models. */
import Type from 'typebox'
import type { LiveOverrides } from '../../calls/routing/live-overrides.ts'
import { targetName } from '../../calls/routing/target-state.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { Supply } from '../../models/supply.ts'
import { invalidValue } from '../../spec/error.ts'
import { closedObject, orNull, titled } from '../../spec/fields.ts'
import type { Override } from '../../store/admin/override-store.ts'
import { assertMatch, ETAG_HEADER, IF_MATCH_HEADER, noSuch, objectAnswer, originOf, present } from './edit.ts'
import { targetId } from './health-schema.ts'
import { listRoute, pageOfAll } from './list.ts'
import { adminRoute } from './route.ts'

type OverrideRouteParts = BodyParts & {
  overrides: LiveOverrides
  /** Whether there is a provider, key, target or model of this name. */
  isConfigured(named: Pick<Override, 'kind' | 'name'>): boolean
}

const KINDS = ['model', 'provider', 'key', 'target'] as const
const state = Type.Union([Type.Literal('drained'), Type.Literal('disabled'), Type.Null()], {
  description:
    'drained: it gets no new calls, open calls end, and its tasks go on. disabled: as if it were not configured; its tasks wait. null: as configured.',
})
const weight = orNull(
  Type.Number({ minimum: 0, maximum: 1_000_000 }),
  'Its share of the calls of its priority; 0: only where no other is left. Of a provider: of each of its targets. Of a key: relative to the other keys. null: as configured.',
)

const OverrideSchema = titled('RoutingOverride', {
  kind: Type.Enum([...KINDS]),
  name: Type.String(),
  weight,
  state,
  set_by: Type.String({ description: 'Who set it last.' }),
  set_at: Type.Integer({ description: 'Unix seconds.' }),
})

const OverrideChange = closedObject('RoutingOverrideChange', {
  weight: Type.Optional(weight),
  state: Type.Optional(state),
})

const ROOT = '/admin/v1/overrides'
const ONE = `${ROOT}/:kind/:name{.+}`
const SHOWN = `${ROOT}/{kind}/{name}`
const params = {
  kind: 'What it is for: model, provider, key or target.',
  name: 'A model id, `provider`, `provider#key`, `provider/model` or `provider/model#key`; `#` is written as `%23`.',
}

type OverrideChange = Type.Static<typeof OverrideChange>
type Named = Pick<Override, 'kind' | 'name'>

export function overrideRoutes({ overrides, isConfigured, ...parts }: OverrideRouteParts): Route[] {
  const readChange = bodyReader(OverrideChange, parts)

  function namedIn({ params: { kind = '', name = '' } }: Context): Named {
    const known = KINDS.find((one) => one === kind)
    if (known) return { kind: known, name }
    throw noSuch('kind of override', kind)
  }

  const presentOf = ({ kind, name }: Named): Override | undefined =>
    overrides.list().find((row) => row.kind === kind && row.name === name)

  const found = (named: Named) => present(presentOf(named), `override of the ${named.kind}`, named.name)

  /** With its row of the audit log, in one transaction. */
  function apply(context: Context, named: Named, change: OverrideChange) {
    return overrides.set(named, change, context.admin.actor, {
      check: (before) => assertMatch(context, before ?? unset(named)),
      audit: (states) => ({
        ...originOf(context),
        at_ms: parts.clock.now(),
        action: states.after ? 'override.set' : 'override.remove',
        object_type: named.kind,
        object_id: named.name,
        ...states,
      }),
    })
  }

  async function change(context: Context): Promise<Response> {
    const named = namedIn(context)
    const requested = await readChange(context)
    const isReset = Object.values(requested).every((value) => value === null)
    if (!isReset && !isConfigured(named)) throw noSuch(named.kind, named.name)
    if (named.kind === 'model' && (requested.weight ?? requested.state ?? 'disabled') !== 'disabled') {
      throw invalidValue(
        typeof requested.weight === 'number' ? 'weight' : 'state',
        'Of a model only "state": "disabled" can be set, or null.',
      )
    }
    const { after } = await apply(context, named, requested)
    return objectAnswer(context, after ?? unset(named))
  }

  async function remove(context: Context): Promise<Response> {
    const named = namedIn(context)
    const present = found(named)
    await apply(context, named, { weight: null, state: null })
    return objectAnswer(context, present)
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'List runtime overrides',
      description: 'What operators have changed at run time of what the configuration says of routing.',
      of: [OverrideSchema, 'RoutingOverrideList'],
      handle: (context) =>
        pageOfAll(context, overrides.list(), { view: (row) => row, placeOf: ({ kind, name }) => `${kind} ${name}` }),
    }),
    adminRoute(['GET', ONE, 'read'], {
      shown: SHOWN,
      summary: 'A runtime override',
      description: 'With who set it, and when.',
      params,
      response: OverrideSchema,
      responseHeaders: ETAG_HEADER,
      handle: (context) => objectAnswer(context, found(namedIn(context))),
    }),
    adminRoute(['PATCH', ONE, 'operate'], {
      shown: SHOWN,
      summary: 'Set weight, drain or disable',
      description:
        'Takes effect in this process at once and in the others within a second, and survives restarts. Absent fields stay as they are; with nothing left that is set, the override is gone.',
      params,
      headers: IF_MATCH_HEADER,
      request: OverrideChange,
      response: OverrideSchema,
      responseHeaders: ETAG_HEADER,
      errors: ['storage_unavailable'],
      example: { state: 'drained' },
      handle: change,
    }),
    adminRoute(['DELETE', ONE, 'operate'], {
      shown: SHOWN,
      summary: 'Remove a runtime override',
      description: 'The configuration counts again.',
      params,
      headers: IF_MATCH_HEADER,
      response: OverrideSchema,
      errors: ['storage_unavailable'],
      handle: remove,
    }),
  ]
}

const unset = (named: Named): Override => ({ ...named, weight: null, state: null, set_by: '', set_at: 0 })

export function isInSupply({ kind, name }: Named, { models, find }: Pick<Supply, 'models' | 'find'>): boolean {
  const [provider = '', key] = name.split('#', 2)
  switch (kind) {
    case 'model':
      return models().some(({ id }) => id === name)
    case 'provider':
      return find(name) !== undefined
    case 'key':
      return find(provider)?.keys.some((one) => one.name === key) ?? false
    case 'target':
      return models().some((model) => hasTarget(model, name))
  }
}

const hasTarget = ({ targets }: CatalogueModel, name: string): boolean =>
  targets.some((target) => targetName(target) === name || targetId(target) === name)
