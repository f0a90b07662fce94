/** A request to an MCP server as a call of the pipeline: its model is `mcp/<server>/<name>`, its target the server. */
import type { ServerContext } from '@modelcontextprotocol/server'
import type { Call, Meter } from '../../calls/call.ts'
import type { Family } from '../../calls/family.ts'
import { AnswerBlocked } from '../../calls/guarded-call.ts'
import { jsonAt } from '../../calls/guards/content.ts'
import type { Config } from '../../config/config.ts'
import { settingsOfName } from '../../config/schema/mcp-schema.ts'
import { type Catalogue, type CatalogueModel, type Chosen, catalogueModel } from '../../models/catalogue.ts'
import { notAllowed } from '../../models/model-errors.ts'
import { compiledPrices } from '../../models/prices.ts'
import { OWNER } from '../../providers/mcp/owner.ts'
import type { McpOffer, McpRequest, McpUpstream, Progress } from '../../providers/mcp/upstream.ts'
import type { Provider, Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'
import { createNotices, type Notices } from './guarded-messages.ts'
import { errorTexts, resultTexts } from './message-texts.ts'
import { RESOURCES, toolId } from './names.ts'

export type ServerCall = Omit<McpRequest, 'signal'> & {
  upstream: Pick<McpUpstream, 'name' | 'request'>
  /** A tool by the server's own name, `prompts/<name>`, or RESOURCES. */
  name: string
  /** It is not charged by the price of its name: a completion, a subscription. */
  is_free?: true
  /** Of its server, before the result. Absent: only those of progress can be. */
  notices?: Notices
}

type ServerResult = Record<string, unknown>
type ServerWork = ServerCall & { targets: Target[] }
type ServerMeter = Meter<undefined> & { answered(): void }
type ServerFamily = Family<ServerCall, ServerWork, ServerResult, ServerMeter>

/** Only the built-in server learns for whom it works. */
export const metaFor = ({ config }: McpUpstream, { token_id }: Call['caller']) =>
  config === undefined ? { _meta: { [OWNER]: token_id } } : {}

const unitsOf = ({ is_free }: ServerWork): Units => ({ ...NO_UNITS, requests: is_free ? 0 : 1 })

function createMeter(work: ServerWork): ServerMeter {
  let isAnswered = false
  return {
    answered() {
      isAnswered = true
    },
    usage: () => undefined,
    units: () => unitsOf(work),
    hasCounted: () => isAnswered,
  }
}

export const serverFamily: ServerFamily = {
  endpoint: () => 'mcp',
  modelOf: ({ upstream, name }) => toolId(upstream.name, name),
  fit: ({ targets }, input) => ({ ...input, targets }),
  meter: createMeter,
  estimate: (work) => ({ expected: unitsOf(work), most: unitsOf(work) }),
  policy: 'until_answered',
  targets: ({ targets }) => targets,
  // An error of a tool says nothing about its server.
  is_observed: false,
  is_hedged: false,
  texts: ({ params }) => [JSON.stringify(params.arguments ?? params.uri ?? params.argument ?? {})],
  guarded: {
    input: ({ params }) => ['arguments', 'uri', 'ref', 'argument', 'context'].flatMap((key) => jsonAt(params, key)),
    output: resultTexts,
  },
  async send(_, { upstream, method, params, onProgress, notices = createNotices() }, { signal, meter, call }) {
    const report = onProgress && ((progress: Progress) => notices.progress(progress, call, onProgress))
    try {
      const result = await upstream.request({ method, params, signal, onProgress: report })
      meter.answered()
      return result
    } catch (thrown) {
      const texts = call.guards?.readsAnswer ? errorTexts(thrown) : []
      if (texts.length > 0 && !(await call.guards?.checkOutput(texts))) throw new AnswerBlocked()
      throw thrown
    } finally {
      await notices.ended()
    }
  },
}

/** A server whose lists are checked within the call, before it is sent: who may not call causes no request. */
export const checkedServer = (
  upstream: McpUpstream,
  check: (signal: AbortSignal) => Promise<void>,
): ServerCall['upstream'] => ({
  name: upstream.name,
  async request(request) {
    await check(request.signal)
    return await upstream.request(request)
  },
})

/** What a server offers now, where a tool of it is called. */
export const offerForCall = (upstream: McpUpstream, signal: AbortSignal): Promise<McpOffer> =>
  upstream.offerForCall(signal).catch(throwUnsent)

/** A call that was not sent is not charged. */
const throwUnsent = (thrown: unknown): never => {
  if (!(thrown instanceof GatewayError) || thrown.code !== 'upstream_timeout') throw thrown
  throw new GatewayError(thrown.code, thrown.message, { ...thrown.detail, accepted: 'no' })
}

/** The call of a subscription, by a function that resolves once it is made. */
export const watchCall = (
  { name }: McpUpstream,
  uri: string,
  watch: (uri: string) => Promise<unknown>,
): ServerCall => ({
  upstream: { name, request: ({ params }) => watch(String(params.uri)).then(() => ({})) },
  name: RESOURCES,
  method: 'resources/subscribe',
  params: { uri },
  is_free: true,
})

type CatalogueParts = { config(): Pick<Config, 'mcp' | 'ledger'>; revision: Catalogue['revision'] }

/** What servers have, as the pipeline knows models; whether it exists is known before it is asked for. */
export function serverCatalogue({ config, revision }: CatalogueParts): Pick<Catalogue, 'require' | 'revision'> {
  const models = new Map<string, CatalogueModel>()
  let made_of = revision.current

  function modelOf(id: string): CatalogueModel {
    if (made_of !== revision.current || models.size >= MAX_MODELS) models.clear()
    made_of = revision.current
    const known = models.get(id)
    if (known) return known
    const [, server = '', tool = ''] = /^mcp\/([^/]+)\/(.*)$/s.exec(id) ?? []
    const { mcp, ledger } = config()
    const { price = 0 } = settingsOfName(mcp.servers[server]?.tools, tool) ?? {}
    const { prices } = compiledPrices(
      { prices: { input: 0, output: 0, request: price, currency: ledger.currency } },
      ledger,
    )
    const provider: Provider = { id: server, kind: 'mcp' }
    const model = catalogueModel({
      id,
      config: { families: [] },
      targets: [{ provider, model: tool, prices }],
      prices,
      created: 0,
      when_retired: 'refuse',
    })
    models.set(id, model)
    return model
  }

  return {
    revision,
    require(id = '', family, caller): Chosen {
      if (!caller.mayUseFamily(family)) {
        throw new GatewayError(
          'model_not_allowed',
          'This token may not use MCP servers: the family "mcp" is not among its own.',
        )
      }
      if (!caller.mayUseModel(id)) throw notAllowed(id)
      const model = modelOf(id)
      return { model, requested: model }
    },
  }
}

/** Names come from servers. */
const MAX_MODELS = 10_000

/** The one caller of a request, and its call. */
export type McpAccess = Pick<Call, 'request_id' | 'caller'> & {
  /** Aborted when the client leaves the request. */
  signal: AbortSignal
  /** The call of the request; `signal` ends it. */
  callFor(signal: AbortSignal): Call
}

/** Set by the route of each request. */
export function accessOf({ http }: ServerContext): McpAccess {
  const access = http?.authInfo?.extra?.access
  if (access === undefined) throw new Error('A request came without its caller.')
  return access as McpAccess
}
