/** How operators control a running gateway: overrides of its routing, its configuration, and their routes. */
import type { Audit } from '../admin/audit/audit.ts'
import { createConfigHistory } from '../admin/config-history.ts'
import { explainRequest } from '../admin/explain-request.ts'
import { createSettingsOf } from '../admin/routes/config.ts'
import { type ControlRouteParts, controlRoutes } from '../admin/routes/control-table.ts'
import { isInSupply } from '../admin/routes/overrides.ts'
import type { Gate } from '../calls/call.ts'
import type { Plans } from '../calls/plan.ts'
import { createLiveOverrides, type LiveOverrides } from '../calls/routing/live-overrides.ts'
import type { Router } from '../calls/routing/router.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/load/environment.ts'
import { personalServer } from '../families/mcp/connections.ts'
import type { Route } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Catalogue } from '../models/catalogue.ts'
import type { Supply } from '../models/supply.ts'
import { askedOf, askProvider } from '../providers/ask-provider.ts'
import type { Store } from '../store/store.ts'
import { providerFactory } from './check-providers.ts'
import { createProposedConfig } from './proposed-config.ts'

type ControlParts = {
  store: Store
  router: Router
  catalogue: Catalogue
  config(): Config
  environment: Environment
  clock: Clock
  log: Log
}

/** What exists only later than the control itself. */
type LaterParts = Omit<
  ControlRouteParts,
  | keyof ReturnType<typeof ownParts>
  | 'supply'
  | 'plans'
  | 'explain'
  | 'isConfigured'
  | 'isModel'
  | 'testProvider'
  | 'audit'
> & { supply: Supply; attemptLimits: Pick<Gate, 'limitOfAttempt'>; plans: Pick<Plans, 'of'> }

type Control = {
  overrides: LiveOverrides
  routes(later: LaterParts): (audit: Pick<Audit, 'around' | 'record'>) => Route[]
  /** Resolves when the overrides of the store are in force. */
  start(): Promise<void>
  close(): Promise<void>
}

export function createControl(parts: ControlParts): Control {
  const { store, router, catalogue, config, environment, clock, log } = parts
  const overrides = createLiveOverrides({
    store: store.overrides,
    apply(next) {
      router.override(next)
      catalogue.disable(next.disabledModels())
    },
    clock,
    log,
  })
  const own = ownParts(parts, overrides)

  async function testProvider(supply: Supply, id: string, key: string | undefined) {
    const found = supply.find(id)?.config
    const asked = found && askedOf(id, found).find((one) => key === undefined || one.key === key)
    if (!asked) throw new Error(`the provider ${id} is not there`)
    return askProvider(asked, { environment, create: providerFactory(config(), environment), clock })
  }

  return {
    overrides,
    routes:
      ({ supply, attemptLimits, plans, ...later }) =>
      (audit) =>
        controlRoutes({
          ...later,
          ...own,
          audit,
          plans,
          supply,
          explain: (request) =>
            explainRequest(request, { catalogue, plans, router, attemptLimits, settings: later.settings, clock }),
          isConfigured: (named) => isInSupply(named, supply),
          isModel: (id) => supply.models().some((model) => model.id === id),
          testProvider: (id, key) => testProvider(supply, id, key),
        }),
    start: overrides.start,
    close: overrides.close,
  }
}

/** What the routes need and is there from the start. */
function ownParts({ store, config, environment, clock, log, ...parts }: ControlParts, overrides: LiveOverrides) {
  const { file, data_dir } = config()
  const source = createProposedConfig({ environment, file, data_dir, clock })

  const testDraft: ControlRouteParts['testDraft'] = async (id, { config: proposed, key, onModels }) => {
    const settings = proposed.providers[id]
    const asked = settings && askedOf(id, settings).find((one) => key === undefined || one.key === key)
    if (!asked) throw new Error(`the proposed provider ${id} is not there`)
    return askProvider(asked, { environment, create: providerFactory(config(), environment), clock, onModels })
  }

  return {
    ...parts,
    budgets: store.budgets,
    budgetSettings: config,
    batches: store.batches,
    tasks: store.tasks,
    webhooks: store.webhooks,
    fileRows: store.files,
    alertHistory: store.alertHistory,
    mcpTools: store.mcpTools,
    hasBuiltInTools: () => config().sandbox && config().mcp.enabled,
    personalServer: (name: string) => personalServer(config().mcp, name),
    configVersions: store.configVersions,
    history: createConfigHistory({ store: store.configVersions, file: source.path, clock, log }),
    ledger: { ...store.ledger, currency: () => config().ledger.currency },
    overrides,
    source,
    configByApi: () => config().admin.config_by_api,
    settingsOf: createSettingsOf(source, config),
    testDraft,
    hasVariable: (name: string) => (environment[name] ?? '') !== '',
    configFile: () => config().file,
    clock,
  }
}
