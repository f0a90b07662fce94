/** The admin API's models: their targets as they are routed now, what is overridden, and where each setting comes from. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { unixSeconds } from '../../kit/clock.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { Supply } from '../../models/supply.ts'
import { noSuch } from './edit.ts'
import { TargetSchema, type TargetViewParts, targetViews } from './health-schema.ts'
import { LIST_PARAMETERS, listAnswer, listSchema, readPage } from './list.ts'
import { DetailFields, detailsOf, KnownFields, knownOf } from './model-view.ts'
import { adminRoute } from './route.ts'
import { SettingSchema, type SettingsOf } from './settings-schema.ts'

export type ModelRouteParts = TargetViewParts & { supply: Pick<Supply, 'models'>; settingsOf: SettingsOf }

const ModelFields = {
  ...KnownFields,
  is_disabled: Type.Boolean({ description: 'By a runtime override: no target serves it, its fallbacks do.' }),
  strategy: Type.String(),
  targets: Type.Array(TargetSchema),
}
const AdminModel = Type.Object(ModelFields, { title: 'AdminModel' })
const AdminModelWithSettings = Type.Object(
  {
    ...ModelFields,
    ...DetailFields,
    settings: Type.Array(SettingSchema, { description: 'What the configuration says of it.' }),
  },
  { title: 'AdminModelWithSettings' },
)

const ROOT = '/admin/v1/models'

export function adminModelRoutes({ supply, settingsOf, ...parts }: ModelRouteParts): Route[] {
  const view = (model: CatalogueModel) => ({
    ...knownOf(model, unixSeconds(parts.clock)),
    is_disabled: parts.overrides.current().disabledModels().has(model.id),
    strategy: model.routing.strategy ?? 'priority',
    targets: targetViews(model, parts),
  })

  function list(context: Context): Response {
    const query = context.query()
    const { limit, after } = readPage(query)
    const provider = query.get('provider')
    const fitting = supply
      .models()
      .filter(({ targets }) => provider === null || targets.some((target) => target.provider.id === provider))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    const rest = after === undefined ? fitting : fitting.filter(({ id }) => id > (after[0] ?? ''))
    const page = rest.slice(0, limit)
    const last = rest.length > limit ? page.at(-1) : undefined
    return listAnswer(page.map(view), last && [last.id])
  }

  return [
    adminRoute(['GET', ROOT, 'read'], {
      summary: 'List models with their targets',
      description:
        'Every model as it is configured or discovered, by id; each target with its weight, its state and its health in this process.',
      query: {
        ...LIST_PARAMETERS,
        provider: { description: 'Only models with a target of this provider.', schema: Type.String() },
      },
      response: listSchema(AdminModel, 'AdminModelList'),
      errors: ['invalid_value'],
      handle: list,
    }),
    adminRoute(['GET', `${ROOT}/:model{.+}`, 'read'], {
      shown: `${ROOT}/{model}`,
      summary: 'A model with its targets',
      description:
        'With its settings and where each of them comes from. Runtime overrides are at `/admin/v1/overrides`.',
      params: { model: 'The full id of a model.' },
      response: AdminModelWithSettings,
      errors: ['object_not_found'],
      handle({ params: { model = '' } }) {
        const found = supply.models().find(({ id }) => id === model)
        if (!found) throw noSuch('model', model)
        return Response.json({ ...view(found), ...detailsOf(found), settings: settingsOf(['models', model]) })
      },
    }),
  ]
}
