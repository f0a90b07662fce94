/** The composition root: creates every part once, connects them, and returns the gateway. */
import { applyDeclared, checkDeclared, startAccounts } from '../accounts/declared.ts'
import { createProjects, type Projects } from '../accounts/projects.ts'
import { createStorageQuotas } from '../accounts/token-quotas.ts'
import { createTokens, type Tokens } from '../accounts/tokens.ts'
import { type Explained, type ExplainRequest, explainRequest, OPERATOR } from '../admin/explain-request.ts'
import { createResponseCache } from '../calls/cache/response-cache.ts'
import { openSharedVectors } from '../calls/cache/shared-vectors.ts'
import { createPipeline, type Pipeline } from '../calls/pipeline.ts'
import { createRouter } from '../calls/routing/router.ts'
import type { Config } from '../config/config.ts'
import { createBackground } from '../families/chat/background-responses.ts'
import { createChat } from '../families/chat/chat.ts'
import { createConversations } from '../families/chat/conversations.ts'
import { createStoredResponses } from '../families/chat/stored-responses.ts'
import { createEmbedText } from '../families/embeddings/embed-text.ts'
import { createEmbeddings } from '../families/embeddings/embeddings.ts'
import { createModerations } from '../families/moderations/moderations.ts'
import { createRerank } from '../families/rerank/rerank.ts'
import { callHeaders } from '../families/shared/call-headers.ts'
import { createApp } from '../http/app.ts'
import type { Peer } from '../http/context.ts'
import { createLoad } from '../http/load.ts'
import { createRevokedCalls } from '../http/revoked-calls.ts'
import { systemClock } from '../kit/clock.ts'
import { createGuardedFetch } from '../kit/guarded-fetch.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { createTokenizer } from '../kit/tokenizer.ts'
import { createCatalogue } from '../models/catalogue.ts'
import { createSupply, type Found } from '../models/supply.ts'
import { createAlertWatch } from '../observe/alerts/alert-watch.ts'
import { createCleaner } from '../outputs/cleaner.ts'
import { outputDirectory } from '../outputs/file-store.ts'
import { createMedia } from '../providers/media.ts'
import { createLateReads } from '../providers/upstream/late-reads.ts'
import { createTransport } from '../providers/upstream/transport.ts'
import type { Model } from '../spec/model.ts'
import type { Token } from '../spec/token.ts'
import { openValkey } from '../store/engines/valkey-connection.ts'
import type { Store, UsageStore } from '../store/store.ts'
import { storeClockFor } from '../store/store-clock.ts'
import { createAccounting } from './accounting.ts'
import { apiRefusal, createAdministration } from './administration.ts'
import { createAskGuard } from './ask-guard.ts'
import { createCallRoute } from './call-route.ts'
import { createControl } from './control.ts'
import { createCallEntry } from './enter-call.ts'
import { createGeneration, type Generation } from './generation.ts'
import { createMcp } from './mcp.ts'
import { createMetering } from './metering.ts'
import { createObservation } from './observation.ts'
import { openGatewayStore } from './open-gateway-store.ts'
import type { GatewayParts } from './parts.ts'
import { createReadiness } from './readiness.ts'
import { routeTable } from './routes.ts'
import { createTelemetry } from './tracing.ts'
import { watchAccounts } from './watch-accounts.ts'

export type Gateway = Pick<Generation, 'tasks' | 'webhooks' | 'batches'> & {
  fetch(request: Request, peer?: Peer): Promise<Response>
  /** What is served now: providers in the order in which they were found, models by id. */
  summary(): { providers: Found[]; models: Model[] }
  /** How a request for this model would be routed now; nothing is sent. Throws GatewayError where none could be. */
  explain(request: ExplainRequest): Explained
  /** The token that was created because the store had none; its secret is shown nowhere else. */
  first_token: { token: Token; secret: string } | undefined
  /** The secret of a link that logs in as owner, made with the first token; undefined: none was. */
  first_login: string | undefined
  /** Resolves when the last discovery of providers and models has ended. */
  readonly discovery: Promise<Found[]>
  /** Applies another configuration in one step, or rejects and changes nothing. */
  reload(config: Config): Promise<void>
  tokens: Tokens
  projects: Projects
  /** Writes the access log and counts the metrics of the requests that have ended, which otherwise takes some milliseconds. */
  flushRequests(): void
  usage: UsageStore['list']
  /** From now on `/readyz` says that it is not ready; everything else is served as before. */
  announceStop(): void
  /** Accepts no more requests, lets open ones finish until the deadline, aborts the rest, and records their usage. */
  drain(options: { deadline_ms: number }): Promise<void>
  releaseMemory: Store['releaseMemory']
  close(options: { deadline_ms: number }): Promise<void>
}

export async function createGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, environment, log, version, build, clock = systemClock, manual = async () => [] } = parts
  const metering = createMetering({ ...parts, clock })
  const store = await openGatewayStore({ ...parts, onCall: metering?.storeCalled })
  const storeClock = await storeClockFor(store, { clock, log })
  // Replaced as a whole by a reload; read at each use.
  let live = config
  let endRevokedCalls = () => Promise.resolve()
  const catalogue = createCatalogue({ clock })
  const accountStores = watchAccounts(store)
  const tokens = createTokens({
    ...accountStores,
    clock,
    log,
    defaults: config.tokens,
    explainRefusal: apiRefusal(config.admin_token),
    revision: catalogue.revision,
    onLook: () => void endRevokedCalls(),
  })
  const projects = createProjects({ store: store.projects, clock, onChange: tokens.projectChanged })
  const guardedFetch = createGuardedFetch({ clock })
  const media = createMedia({ guardedFetch })
  const [tokenizer, router] = [createTokenizer({ clock }), createRouter({ clock, log })]
  const control = createControl({ store, router, catalogue, config: () => live, environment, clock, log })
  const process_id = `gw_${randomAlphanumerics(16)}`
  const telemetry = parts.is_idle ? undefined : await createTelemetry({ ...parts, process_id, clock })
  const tracing = telemetry?.tracing
  // A reload changes its members.
  const settings = { ...config.server }
  const lateReads = createLateReads({ seconds: () => live.calls.finish_after_leave_seconds, clock })
  const transport = createTransport({ clock, log, environment, headersFor: tracing?.headersFor, lateReads })
  const sources = { environment, manual, catalogue, media, seen: store.models, transport }
  const supply = createSupply({ ...sources, clock, log, onRecovered: parts.is_idle ? undefined : router.recovered })
  const declare = (next: Config) => applyDeclared(next, { projects, tokens, log })
  const first_token = await startAccounts(config, { tokens, declare: parts.is_idle ? async () => {} : declare })
  await supply.apply(config)

  const observation = createObservation({ store, accountStores, config: () => live, telemetry, metering, clock, log })
  const quotas = createStorageQuotas({ store, config: () => live, clock })
  const storing = { settings: () => live.responses, quota: quotas.responses }
  const storedResponses = createStoredResponses({ ...storing, store: store.responses, clock })
  const conversations = createConversations({ ...storing, store: store.conversations, clock: storeClock, log })
  const valkey = parts.is_idle || !config.valkey ? undefined : openValkey(config.valkey, { clock, log })
  const shared = { store, valkey, process_id, config: () => live, catalogue, guardedFetch, onUsed: tokens.used, log }
  const { alerted: onRaised, taskChanged: onTaskChanged } = observation.readers.live
  const moderations = createModerations({ tokenizer })
  const askGuard = createAskGuard({ pipeline: () => pipeline, chat: () => chat, moderations, guardedFetch, clock, log })
  const alerting = { onRaised, onRefused: metering?.refused }
  const accounting = createAccounting({ ...shared, ...alerting, askGuard, clock: storeClock })
  const { ledger, alerts, attemptLimits, reports, stages } = accounting
  const sharedVectors = parts.is_idle ? undefined : await openSharedVectors(store, config, log)
  const caching = { store: store.cachedAnswers, valkey, sharedVectors, settings: () => live.cache }
  const cache = createResponseCache({ ...caching, clock, log })
  const embeddings = createEmbeddings({ tokenizer })
  const watch = createAlertWatch({
    alerts,
    router,
    ledger: { health: ledger.health, usage: store.ledger.usage },
    ready: () => canStore(),
    models: () => catalogue.list(OPERATOR),
    directories: [config.data_dir, outputDirectory(config)],
    settings: () => live.alerts,
    clock,
    log,
  })
  const pipeline: Pipeline = createPipeline({
    catalogue,
    ...stages,
    router,
    subscribers: observation.calls,
    cache,
    traceAttempt: tracing?.traceAttempt,
    embedText: createEmbedText({ catalogue, family: embeddings, pipeline: () => pipeline, clock, log }),
    clock,
    log,
  })
  const { calls: subscribers } = observation
  const mcp = createMcp({ ...shared, tokens, transport, stages, router, subscribers, environment, version, clock })
  const chat = createChat({ tokenizer, clock })
  const generation = await createGeneration({
    ...shared,
    onTaskChanged,
    settings,
    pipeline,
    quotas,
    supply,
    router,
    attemptLimits,
    overrides: control.overrides,
    media,
    alerts,
    metering,
    clock,
    storeClock,
    workTracer: tracing?.workTracer,
    crashHook: parts.crashHook,
    callRoute: createCallRoute(() => app),
    callerOf: tokens.callerOf,
  })
  const chatting = { pipeline, chat, storedResponses, conversations }
  const background = createBackground({
    ...chatting,
    runs: store.responseRuns,
    quota: quotas.responses,
    callerOf: tokens.callerOf,
    fileInputs: generation.routeParts.fileInputs,
    clock: storeClock,
    log,
  })
  const { tasks, webhooks, batches, files, routeParts: made } = generation
  const cleaner = createCleaner({ ...accounting, ...observation, ...generation, tasks: store.tasks, cache, clock, log })
  const { canStore, accepts: ready, announceStop } = createReadiness({ store, files, clock, log })
  const known = { ...observation.readers, ...stages, ...made, mcpServers: mcp.servers, mcpConnections: mcp.connections }
  const controls = control.routes({ supply, ...known, attemptLimits, settings, tokens, projects, cache })
  const health = { ledger: ledger.health, tasks: tasks.health, open_requests: () => app.open() }
  const accounts = { ...shared, ...observation.readers, projects, tokens, reports, ready, health, version, metering }
  const administration = createAdministration({ ...accounts, settings, controls, environment, clock, log })
  const first_login = first_token && !parts.is_idle ? await administration.firstLogin() : undefined
  const load = createLoad({ settings, onDelay: metering?.loopDelayed, log })
  const entry = createCallEntry({ settings, load, observation })
  const app = createApp({
    routes: routeTable({
      ...reports,
      ...entry,
      ...chatting,
      tokens,
      catalogue,
      tokenizer,
      background,
      embeddings,
      rerank: createRerank({ tokenizer }),
      moderations,
      mcp,
      ...made,
      byName: { supply, config: () => live, ...stages },
      admin: [...administration.routes, ...(metering?.routes ?? [])],
      ...observation.readers,
      manual,
      ready,
      version,
      build,
      settings,
      clock,
      log,
    }),
    authenticate: tokens.authenticate,
    ...administration.app,
    settings,
    clock,
    log,
    onFinished: observation.requestFinished,
    onArrival: tracing?.openTrace,
    ...entry.app,
    addHeaders: callHeaders({ settings, clock }),
  })
  metering?.watch({ ...accounting, store, router, tasks, batches, app, telemetry, config: () => live })
  endRevokedCalls = createRevokedCalls({ open: [app.requests, mcp.waiting], isValid: tokens.isValid, settings, log })
  await valkey?.opened
  // Known before the first request, so that the first read of the revision does not invalidate cached tokens.
  await Promise.all([tokens.start(), control.start(), cache.start(), !parts.is_idle && administration.start()])
  if (!parts.is_idle)
    for (const work of [tasks, background, webhooks, batches, cleaner, accounting, watch, load]) work.start()
  let discovery = supply.discover()

  async function drain(options: { deadline_ms: number }): Promise<void> {
    tasks.endWaits()
    batches.announceStop()
    for (const reads of [lateReads, observation.readers.live]) reads.close()
    const end = clock.steady() + options.deadline_ms
    await Promise.all([app.close(options), mcp.drain()])
    // Only now, since requests wait for what runs in the background; before the calls of both are settled.
    const left = { deadline_ms: Math.max(0, end - clock.steady()) }
    await Promise.all([tasks, webhooks, background, batches].map((worker) => worker.stop(left)))
    await settle()
    await ledger.flush()
  }

  /** Waits for the usage of calls whose response was sent, and records them. */
  async function settle(): Promise<void> {
    const cancel = clock.after(SETTLE_MILLISECONDS, tokenizer.close)
    await Promise.all([pipeline, mcp.calls].map((calls) => calls.close({ deadline_ms: 2 * SETTLE_MILLISECONDS })))
    cancel()
    observation.flush()
  }

  return {
    fetch: app.fetch,
    summary: () => ({ providers: supply.providers(), models: catalogue.list(OPERATOR) }),
    explain: (request) => explainRequest(request, { catalogue, ...stages, router, attemptLimits, settings, clock }),
    first_token,
    first_login,
    get discovery() {
      return discovery
    },
    tokens,
    projects,
    tasks,
    webhooks,
    batches,
    flushRequests: observation.flush,
    usage: store.usage.list,
    async reload(next) {
      checkDeclared(next)
      await supply.apply(next)
      await declare(next)
      await administration.reloaded(live, next)
      live = next
      catalogue.revision.current++
      accounting.reloaded()
      observation.contents.reloaded()
      mcp.apply()
      Object.assign(settings, next.server)
      discovery = supply.discover()
    },
    announceStop,
    releaseMemory: store.releaseMemory,
    drain,
    async close({ deadline_ms }) {
      await drain({ deadline_ms })
      await Promise.all([cleaner.stop(), watch.stop(), load.stop(), mcp.close({ deadline_ms })])
      await supply.close()
      await settle()
      await Promise.all([accounting.close({ deadline_ms }), cache.close(), observation.close({ deadline_ms })])
      await telemetry?.close({ deadline_ms })
      valkey?.close()
      await Promise.all([tokens.close(), control.close()])
      tokenizer.close()
      await store.close()
    },
  }
}

/** How long the usage of aborted calls may take to be estimated; then the tokenizer closes, and its estimates are rough. */
const SETTLE_MILLISECONDS = 2_000
