/** Builds every part of the house once, joins them, and hands back the whole. */
import { createChat } from './chat/chat.ts'
import { chatcompatDialect } from './chat/dialects/chatcompat.ts'
import { chatRoute } from './chat/http.ts'
import { createMeter } from './chat/meter.ts'
import { type Config, storeUrl } from './config/config.ts'
import { createApp, type Peer } from './http/app.ts'
import { type Clock, systemClock } from './kit/clock.ts'
import type { Log } from './kit/log.ts'
import { createTokenizer } from './kit/tokenizer.ts'
import { createCatalogue } from './models/catalogue.ts'
import { modelRoutes } from './models/http.ts'
import { routeTable } from './routes.ts'
import type { Model } from './spec/model.ts'
import type { Caller, Token } from './spec/token.ts'
import { openStore } from './store/open-store.ts'
import type { UsageStore } from './store/store.ts'
import { createSupply, type Found } from './supply.ts'
import { createLedger } from './tokens/ledger.ts'
import { presentedSecret } from './tokens/presented.ts'
import { createTokens, type Tokens } from './tokens/tokens.ts'

export type GatewayParts = {
  config: Config
  /** The process environment, for upstream keys. */
  environment: Record<string, string | undefined>
  log: Log
  clock?: Clock
  /** Where things are remembered; default: a file in `config.data_dir`. */
  store_url?: string
  /** The manual's pages, for the sandbox to answer from. */
  manual?: () => Promise<{ name: string; text: string }[]>
  version: string
}

export type Gateway = {
  fetch(request: Request, peer?: Peer): Promise<Response>
  /** What is served now: providers in the order found, models by id. */
  summary(): { providers: Found[]; models: Model[] }
  /** The token that was made because the store held none; its secret is shown nowhere else. */
  first_token: { token: Token; secret: string } | undefined
  /** Settles when the search for providers and models has ended, at start or after the last reload. */
  readonly discovery: Promise<Found[]>
  /** Puts another configuration in place in one step, or rejects and changes nothing. */
  reload(config: Config): Promise<void>
  /** Who may call. */
  tokens: Tokens
  /** What was used, as far as it is written down: newest hour first. */
  usage: UsageStore['list']
  /** Takes no more requests, lets the open ones finish until the deadline, cuts the rest. */
  drain(options: { deadline_ms: number }): Promise<void>
  /** Drains, and writes down what is still in memory. */
  close(options: { deadline_ms: number }): Promise<void>
}

export async function createGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, environment, log, version, clock = systemClock, manual = async () => [] } = parts
  const store = await openStore({ url: parts.store_url ?? storeUrl(config.data_dir) })
  const tokens = createTokens({ store: store.tokens, clock, log, defaults: config.tokens })
  const ledger = createLedger({ usage: store.usage, clock, log, onUsed: tokens.used })
  const tokenizer = createTokenizer({ clock })
  const catalogue = createCatalogue({ clock })
  const supply = createSupply({ environment, clock, log, manual, catalogue, seen: store.models })
  // One object for the life of the gateway: a reload changes its members, and requests read them as they come.
  const settings = { ...config.server }

  const first_token = await tokens.issueFirst(
    config.bootstrap_token === undefined ? {} : { secret: config.bootstrap_token },
  )
  await supply.apply(config)

  const chat = createChat({
    catalogue,
    startMeter: (model, request, { caller, note }) =>
      createMeter({
        request,
        tokenizer,
        note,
        record: (use) => ledger.record({ token_id: caller.token_id, model: model.id, ...use }),
      }),
  })
  const app = createApp({
    routes: routeTable({
      models: modelRoutes({ catalogue }),
      chat: chatRoute({ chat, dialect: chatcompatDialect(settings), settings, clock, log }),
      ready: () => store.ping(),
      version,
    }),
    authenticate: (context) => tokens.authenticate(presentedSecret(context.request), context),
    settings,
    clock,
    log,
  })
  tokens.start()
  let discovery = supply.discover()

  return {
    fetch: (request, peer = { address: '127.0.0.1' }) => app.fetch(request, peer),
    summary: () => ({ providers: supply.providers(), models: catalogue.list(EVERYBODY) }),
    first_token,
    get discovery() {
      return discovery
    },
    tokens,
    usage: store.usage.list,
    async reload(next) {
      await supply.apply(next)
      Object.assign(settings, next.server)
      discovery = supply.discover()
    },
    drain: app.close,
    async close({ deadline_ms }) {
      await app.close({ deadline_ms })
      await supply.close()
      await ledger.close()
      await tokens.close()
      tokenizer.close()
      await store.close()
    },
  }
}

/** Sees the whole catalogue: for the operator's own eyes. */
const EVERYBODY: Caller = { token_id: '', mayUseModel: () => true, mayUseFamily: () => true }
