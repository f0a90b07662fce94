/** Which limits a call must keep: looked up once for each caller and model. */
import { settingsOfName } from '../../config/schema/mcp-schema.ts'
import type { RateLimits } from '../../spec/rate-limit.ts'
import type { Limits } from './hold.ts'
import type { Limited, Scopes } from './scopes.ts'

/** As much of a caller as limits depend on. */
export type LimitedCaller = {
  token_id: string
  project_id?: string
  rate_limits?: RateLimits
  end_users?: { rate_limits?: RateLimits }
  project?: { project_id: string; rate_limits?: RateLimits; end_users?: { rate_limits?: RateLimits } }
}

/** The limits that the operator has configured; replaced as a whole by a reload. */
export type ConfiguredLimits = {
  rate_limits?: RateLimits
  models: Readonly<Record<string, { rate_limits?: RateLimits }>>
  providers?: Readonly<Record<string, { rate_limits?: RateLimits }>>
  mcp?: { servers: Readonly<Record<string, { tools?: Readonly<Record<string, { rate_limits?: RateLimits }>> }>> }
  /** Of tokens that have none of their own. */
  tokens: { rate_limits?: RateLimits; end_users?: { rate_limits?: RateLimits } }
}

/** The limits of a caller at a model. */
export type LimitPlan = {
  /** Of the scopes that it was made of: where they have another one, it is made anew. */
  readonly version: number
  readonly own: Limits
  /** The same as the only list; empty where there are none. */
  readonly alone: readonly Limits[]
  /** Of each end user; the owner is shown as it is named. */
  readonly end_users: readonly { owner: string; rate_limits: RateLimits }[]
}

export type Plans = ReturnType<typeof createPlans>

type PlansOfCaller = { config: ConfiguredLimits; version: number; byModel: Map<string, LimitPlan> }

export function createPlans(scopes: Scopes, config: () => ConfiguredLimits) {
  const known = new WeakMap<LimitedCaller, PlansOfCaller>()

  const ofProject = ({ project }: LimitedCaller, now: number): Limited | undefined =>
    project && scopes.limited(scopes.of('project', project.project_id, now), project.rate_limits)

  function ofToken({ token_id, rate_limits }: LimitedCaller, now: number): Limited | undefined {
    if (token_id === '') return undefined
    return scopes.limited(scopes.of('token', token_id, now), nonEmpty(rate_limits) ?? config().tokens.rate_limits)
  }

  function plan(caller: LimitedCaller, model: string, now: number): LimitPlan {
    const { rate_limits, tokens } = config()
    const { token_id, project } = caller
    const all = [
      scopes.limited(scopes.of('installation', '', now), rate_limits),
      scopes.limited(scopes.of('model', model, now), limitsOfModel(config(), model)),
      ofProject(caller, now),
      ofToken(caller, now),
    ].filter((one) => one !== undefined)
    const perUser = nonEmpty(caller.end_users?.rate_limits) ?? tokens.end_users?.rate_limits
    const perUserOfProject = nonEmpty(project?.end_users?.rate_limits)
    const own = {
      counters: all.flatMap(({ counters }) => counters),
      limits: all.flatMap(({ limits }) => limits),
      tasks: all.flatMap(({ tasks }) => tasks),
    }
    return {
      version: scopes.version,
      own,
      alone: own.counters.length + own.tasks.length === 0 ? [] : [own],
      end_users: [
        ...(perUser && token_id !== '' ? [{ owner: `token ${token_id}`, rate_limits: perUser }] : []),
        ...(project && perUserOfProject
          ? [{ owner: `project ${project.project_id}`, rate_limits: perUserOfProject }]
          : []),
      ],
    }
  }

  return {
    ofToken,
    ofProject,
    /** Whether calls of the caller at the model keep any limit, as things are configured. */
    applies({ rate_limits: own, end_users, project }: LimitedCaller, model: string): boolean {
      const { rate_limits, tokens } = config()
      const ofModel = limitsOfModel(config(), model)
      const ofUsers = [end_users, tokens.end_users, project?.end_users].map((users) => users?.rate_limits)
      const all = [rate_limits, ofModel, own, tokens.rate_limits, project?.rate_limits, ...ofUsers]
      return all.some((limits) => nonEmpty(limits) !== undefined)
    },
    of(caller: LimitedCaller, model: string, now: number): LimitPlan {
      let plans = known.get(caller)
      if (plans === undefined || plans.config !== config() || plans.version !== scopes.version) {
        plans = { config: config(), version: scopes.version, byModel: new Map() }
        known.set(caller, plans)
      }
      let found = plans.byModel.get(model)
      if (found === undefined) {
        found = plan(caller, model, now)
        if (plans.version !== scopes.version) {
          // To make place, scopes were forgotten, perhaps some of these.
          plans.byModel.clear()
          plans.version = scopes.version
          found = plan(caller, model, now)
        }
        plans.byModel.set(model, found)
      }
      return found
    },
  }
}

/** Of a model of the configuration, or of what an MCP server has, `mcp/<server>/<name>`. */
function limitsOfModel({ models, mcp }: ConfiguredLimits, id: string): RateLimits | undefined {
  if (Object.hasOwn(models, id)) return models[id]?.rate_limits
  if (!mcp || !id.startsWith('mcp/')) return undefined
  const [, server = '', ...name] = id.split('/')
  if (!Object.hasOwn(mcp.servers, server)) return undefined
  return settingsOfName(mcp.servers[server]?.tools, name.join('/'))?.rate_limits
}

const nonEmpty = (limits: RateLimits | undefined): RateLimits | undefined =>
  limits !== undefined && Object.keys(limits).length > 0 ? limits : undefined
