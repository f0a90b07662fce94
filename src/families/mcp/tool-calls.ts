/** A call of a tool as a call of the pipeline: its model is `mcp/<server>/<tool>`, its target the server. */
import type { Call, Meter } from '../../calls/call.ts'
import type { Family } from '../../calls/family.ts'
import { type GuardedText, jsonAt, textAt } from '../../calls/guards/content.ts'
import type { Config, McpSettings } from '../../config/config.ts'
import { isRecord } from '../../kit/json.ts'
import { type Catalogue, type CatalogueModel, type Chosen, catalogueModel } from '../../models/catalogue.ts'
import { notAllowed } from '../../models/model-errors.ts'
import { compiledPrices } from '../../models/prices.ts'
import { OWNER } from '../../providers/mcp/owner.ts'
import type { McpUpstream, Progress } from '../../providers/mcp/upstream.ts'
import type { Provider, Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'
import { toolId } from './names.ts'

type ToolCall = {
  upstream: McpUpstream
  /** The server's own name. */
  tool: string
  params: Record<string, unknown>
  onProgress?: ((progress: Progress) => void) | undefined
}

type ToolResult = Record<string, unknown>
type ToolWork = ToolCall & { targets: Target[] }
type ToolMeter = Meter<undefined> & { answered(): void }
type ToolFamily = Family<ToolCall, ToolWork, ToolResult, ToolMeter>

/** Only the built-in server learns for whom it works. */
export const metaFor = ({ config }: McpUpstream, { token_id }: Call['caller']) =>
  config === undefined ? { _meta: { [OWNER]: token_id } } : {}

const UNITS: Units = { ...NO_UNITS, requests: 1 }

function createMeter(): ToolMeter {
  let isAnswered = false
  return {
    answered() {
      isAnswered = true
    },
    usage: () => undefined,
    units: () => UNITS,
    hasCounted: () => isAnswered,
  }
}

export const toolFamily: ToolFamily = {
  endpoint: () => 'mcp',
  modelOf: ({ upstream, tool }) => toolId(upstream.name, tool),
  fit: ({ targets }, input) => ({ ...input, targets }),
  meter: createMeter,
  estimate: () => ({ expected: UNITS, most: UNITS }),
  policy: 'until_answered',
  targets: ({ targets }) => targets,
  // An error of a tool says nothing about its server.
  is_observed: false,
  is_hedged: false,
  texts: ({ params }) => [JSON.stringify(params.arguments ?? {})],
  guarded: { input: ({ params }) => jsonAt(params, 'arguments'), output: resultTexts },
  async send(_, { upstream, params, onProgress }, { signal, meter }) {
    const result = await upstream.request({ method: 'tools/call', params, signal, onProgress })
    meter.answered()
    return result
  },
}

/** Whatever of a result a model may read. Media are not read. */
function resultTexts(result: ToolResult): GuardedText[] {
  const { content } = result
  const blocks = Array.isArray(content) ? content.filter(isRecord) : []
  return [
    ...blocks.flatMap((block) => [
      ...textAt(block, 'text'),
      ...textAt(block, 'uri'),
      ...textAt(block, 'description'),
      ...(isRecord(block.resource) ? [...textAt(block.resource, 'text'), ...textAt(block.resource, 'uri')] : []),
    ]),
    ...jsonAt(result, 'structuredContent'),
    ...jsonAt(result, '_meta'),
  ]
}

/** The settings of a tool: those of its name, else those of `*`. */
function settingsOf({ servers }: Pick<McpSettings, 'servers'>, server: string, tool: string) {
  const { tools = {} } = servers[server] ?? {}
  return (Object.hasOwn(tools, tool) ? tools[tool] : tools['*']) ?? {}
}

type CatalogueParts = { config(): Pick<Config, 'mcp' | 'ledger'>; revision: Catalogue['revision'] }

/** The tools as the pipeline knows models; whether a tool exists is known before it is called. */
export function toolCatalogue({ config, revision }: CatalogueParts): Pick<Catalogue, 'require' | 'revision'> {
  const models = new Map<string, CatalogueModel>()
  let made_of = revision.current

  function modelOf(id: string): CatalogueModel {
    if (made_of !== revision.current || models.size >= MAX_MODELS) models.clear()
    made_of = revision.current
    const known = models.get(id)
    if (known) return known
    const [, server = '', tool = ''] = /^mcp\/([^/]+)\/(.*)$/s.exec(id) ?? []
    const { mcp, ledger } = config()
    const { price = 0 } = settingsOf(mcp, server, tool)
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
          'This token may not call tools: the family "mcp" is not among its own.',
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
export type McpAccess = {
  caller: Call['caller']
  /** The call of the request; `signal` ends it. */
  callFor(signal: AbortSignal): Call
}
