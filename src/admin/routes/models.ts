/** The admin API's models: their targets as they are routed now, what is overridden, and where each setting comes from. */
import Type from 'typebox'
import type { Projects } from '../../accounts/projects.ts'
import type { Context, Route } from '../../http/context.ts'
import { unixSeconds } from '../../kit/clock.ts'
import { matchesGlob } from '../../kit/glob.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { Supply } from '../../models/supply.ts'
import { titled } from '../../spec/fields.ts'
import { noSuch } from './edit.ts'
import { TargetSchema, type TargetViewParts, targetViews } from './health-schema.ts'
import { listRoute, pageAnswer, readPage } from './list.ts'
import { MODEL_PARAMETERS, ModelCounts, modelCounts, modelFilter, modelOrder } from './model-query.ts'
import { DetailFields, detailsOf, KnownFields, knownOf } from './model-view.ts'
import { adminRoute } from './route.ts'
import { SettingSchema, type SettingsOf } from './settings-schema.ts'

type ModelRouteParts = TargetViewParts & {
  supply: Pick<Supply, 'models'>
  settingsOf: SettingsOf
  projects: Pick<Projects, 'find'>
}

const ModelFields = {
  ...KnownFields,
  is_disabled: Type.Boolean({ description: 'By a runtime override: no target serves it, its fallbacks do.' }),
  strategy: Type.String(),
  targets: Type.Array(TargetSchema),
}
const AdminModel = titled('AdminModel', ModelFields)
const Totals = {
  total: Type.Integer({ minimum: 0, description: 'How many models fit, on all pages.' }),
  counts: ModelCounts,
}
const AdminModelWithSettings = titled('AdminModelWithSettings', {
  ...ModelFields,
  ...DetailFields,
  settings: Type.Array(SettingSchema, { description: 'What the configuration says of it.' }),
})

const ROOT = '/admin/v1/models'

export function adminModelRoutes({ supply, settingsOf, projects, ...parts }: ModelRouteParts): Route[] {
  /** Those that the caller may know: who is bound to a project knows the models that the project may use. */
  async function modelsFor({ admin: { project_id } }: Context): Promise<readonly CatalogueModel[]> {
    const models = supply.models()
    if (project_id === undefined) return models
    const project = await projects.find(project_id)
    if (!project) return []
    const families = project.families && new Set<string>(project.families)
    return models
      .filter(({ id }) => project.models.some((glob) => matchesGlob(glob, id)))
      .map((model) => (families ? { ...model, families: model.families.filter((one) => families.has(one)) } : model))
      .filter((model) => model.families.length > 0)
  }

  /** Of what lies behind a model, who is bound to a project learns nothing. */
  const view = (model: CatalogueModel, { admin }: Context) => ({
    ...knownOf(model, unixSeconds(parts.clock)),
    is_disabled: parts.overrides.current().disabledModels().has(model.id),
    strategy: model.routing.strategy ?? 'priority',
    targets: admin.project_id === undefined ? targetViews(model, parts) : [],
  })

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { limit, after } = readPage(query)
    const now = unixSeconds(parts.clock)
    const { placeOf, compare } = modelOrder(query, now)
    // Who is bound to a project does not learn whose models they are.
    const isHidden = context.admin.project_id !== undefined && query.has('provider')
    const known = isHidden ? [] : await modelsFor(context)
    const fitting = known
      .filter(modelFilter(query, now))
      .map((model) => ({ model, place: placeOf(model) }))
      .sort((one, other) => compare(one.place, other.place))
    const rest = after === undefined ? fitting : fitting.filter(({ place }) => compare(place, after) > 0)
    return pageAnswer(rest, {
      limit,
      view: ({ model }) => view(model, context),
      keyOf: ({ place }) => place,
      more: { total: fitting.length, counts: modelCounts(known, query, now) },
    })
  }

  return [
    listRoute(['GET', ROOT, { right: 'read', project: 'own' }], {
      summary: 'List models with their targets',
      description:
        'Every model as it is configured or discovered, by id; each target with its weight, its state and its health in this process. A project_admin and a project_member see the models of their project, without targets, fallbacks and settings.',
      query: MODEL_PARAMETERS,
      of: [AdminModel, 'AdminModelList', Totals],
      handle: list,
    }),
    adminRoute(['GET', `${ROOT}/:model{.+}`, { right: 'read', project: 'own' }], {
      shown: `${ROOT}/{model}`,
      summary: 'A model with its targets',
      description:
        'With its settings and where each of them comes from. Runtime overrides are at `/admin/v1/overrides`.',
      params: { model: 'The full id of a model.' },
      response: AdminModelWithSettings,
      async handle(context) {
        const { model = '' } = context.params
        const known = await modelsFor(context)
        const found = known.find(({ id }) => id === model)
        if (!found) throw noSuch('model', model)
        const { fallbacks, ...details } = detailsOf(found)
        const isOwn = context.admin.project_id === undefined
        return Response.json({
          ...view(found, context),
          ...details,
          fallbacks: isOwn ? fallbacks : {},
          settings: isOwn ? settingsOf(['models', model]) : [],
        })
      },
    }),
  ]
}
