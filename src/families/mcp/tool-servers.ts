/** The tools of MCP servers for chat models, called through the pipeline as those of MCP clients are. */
import type { Pipeline } from '../../calls/pipeline.ts'
import type { McpSettings } from '../../config/config.ts'
import { isRecord, recordsIn } from '../../kit/json.ts'
import { type McpOffer, McpRefusal } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { toNano } from '../../spec/price.ts'
import type { Caller } from '../../spec/token.ts'
import type { ToolServers } from '../shared/tool-servers.ts'
import type { GuardedLists } from './guarded-lists.ts'
import type { McpServers } from './servers.ts'
import { checkedServer, metaFor, offerForCall, serverFamily } from './tool-calls.ts'

type ToolServerParts = {
  servers: McpServers
  lists: Pick<GuardedLists, 'passed' | 'shows'>
  pipeline(): Pick<Pipeline, 'run'>
  settings(): McpSettings
}

/** A model reads all of a result, and is charged for it. */
const MAX_OUTPUT_CHARACTERS = 200_000

export function createToolServers({ servers, lists, pipeline, settings }: ToolServerParts): ToolServers {
  return {
    limits() {
      const { max_chat_rounds: max_rounds, max_chat_calls: max_calls, max_chat_seconds: max_seconds } = settings()
      const { max_chat_cost = Number.POSITIVE_INFINITY } = settings()
      return { max_rounds, max_calls, max_seconds, max_cost: toNano(max_chat_cost) }
    },
    find({ label = '', connector_id, server_url }, caller: Caller) {
      const upstream =
        server_url === undefined
          ? servers.find(connector_id ?? label, caller)
          : servers.of(caller).find(({ config }) => config?.url === server_url)
      if (!upstream) return undefined

      const usable = async (offer: McpOffer) => {
        const approved = await servers.approvedOf(upstream, offer)
        return servers.toolsOf(upstream, offer, caller).filter((tool) => approved.has(tool.name))
      }

      return {
        async list(call) {
          const listing = { caller, results: call.record?.guards ?? [], call: () => call }
          const own = { server: upstream.name, nameOf: ({ name }: McpOffer['tools'][number]) => name, listing }
          return (await lists.passed(await usable(await upstream.offer()), own)).map(
            ({ name, description, inputSchema, annotations = null }) => ({
              name,
              ...(description !== undefined && { description }),
              input_schema: inputSchema,
              annotations,
            }),
          )
        },
        async call(tool, args, call) {
          try {
            const unknown = new GatewayError('invalid_value', `There is no tool "${tool}".`)
            const find = (tools: McpOffer['tools']) => tools.find(({ name }) => name === tool)
            if (!upstream.config?.oauth_user && !find(servers.toolsOf(upstream, await upstream.offer(), caller)))
              throw unknown
            const checked = checkedServer(upstream, async (signal) => {
              const found = find(await usable(await offerForCall(upstream, signal)))
              if (!found || !(await lists.shows(found, { server: upstream.name, name: tool }, call))) throw unknown
            })
            const params = { name: tool, arguments: args, ...metaFor(upstream, caller) }
            const sent = { upstream: checked, name: tool, method: 'tools/call' as const, params }
            const { answer } = await pipeline().run(serverFamily, call, sent)
            const output = textOf(answer)
            return answer.isError === true ? { error: output } : { output }
          } catch (thrown) {
            call.signal.throwIfAborted()
            if (thrown instanceof GatewayError || thrown instanceof McpRefusal) return { error: thrown.message }
            throw thrown
          }
        },
      }
    },
  }
}

/** Media are named, since a result is one text for a model. */
function textOf({ content, structuredContent }: Record<string, unknown>): string {
  const blocks = recordsIn(content)
  const texts = blocks.map((block) => {
    if (typeof block.text === 'string') return block.text
    if (isRecord(block.resource) && typeof block.resource.text === 'string') return block.resource.text
    return typeof block.uri === 'string' ? block.uri : `[${block.type} ${block.mimeType ?? ''}]`
  })
  const text =
    texts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : texts.join('\n')
  if (text.length <= MAX_OUTPUT_CHARACTERS) return text
  return `${text.slice(0, MAX_OUTPUT_CHARACTERS)}\n[cut after ${MAX_OUTPUT_CHARACTERS} of ${text.length} characters]`
}
