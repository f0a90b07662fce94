/**
 * A response whose MCP tools the gateway calls itself: the model is called, then the tools that it asks for, and again, until
 * it asks for none. Each call of the model and of a tool is a call of the pipeline.
 */
import { type Call, type CallRecord, whenEnded } from '../../calls/call.ts'
import type { ClientRequest } from '../../calls/endpoint.ts'
import type { Pipeline, SentStream } from '../../calls/pipeline.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { memberOf } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { errorForClient } from '../../protocols/responses/client/error.ts'
import type { McpCallItem, Open, StoreResponse } from '../../protocols/responses/client/items.ts'
import {
  allowedBy,
  approvedCalls,
  type ListedTool,
  type McpTool,
  mcpToolsOf,
  waitsForApproval,
  withFunctions,
  withoutSecrets,
} from '../../protocols/responses/client/mcp-tools.ts'
import { translatedRequest } from '../../protocols/responses/client/request.ts'
import { createResponsesEncoder } from '../../protocols/responses/client/response.ts'
import type { InputItem, ResponsesRequest } from '../../protocols/responses/client/schema.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import type { ResponseEncoder } from '../../protocols/shared/protocol.ts'
import { asGatewayError, GatewayError, invalidValue } from '../../spec/error.ts'
import { addedUsage, type Usage } from '../../spec/usage.ts'
import type { ToolServer, ToolServers } from '../shared/tool-servers.ts'
import type { Chat } from './chat.ts'
import type { Deferred } from './dialects/dialect.ts'
import { createRoundLimits, type ListedServer } from './round-limits.ts'
import type { Items } from './sent-items.ts'

type ToolRoundParts = { toolServers: ToolServers; pipeline: Pipeline; chat: Chat; clock: Clock; log: Log }

type RoundsRequest = {
  clientRequest: ResponsesRequest
  sent: Items
  call: ClientRequest
  /** Ends with the last round; the store and the conversation wait for it. */
  whole: Call
  admit: ((call: Call) => Promise<void>) | undefined
  store: StoreResponse | undefined
  isStored: boolean
}

export type ToolRounds = {
  /** Whether tools of the request are of servers of the gateway. Throws for a label of a server that the caller may not use. */
  serves(body: unknown, call: Call): boolean
  /** The servers that tools of the request name. */
  listed(request: { tools?: unknown }, call: Call): Promise<(ListedServer & { tool: McpTool; at: string })[]>
  run(request: RoundsRequest): Promise<Deferred>
}

/** Items after which the client continues. */
const FOR_CLIENT: ReadonlySet<string> = new Set([
  'function_call',
  'custom_tool_call',
  'tool_search_call',
  'mcp_approval_request',
])

export function createToolRounds(parts: ToolRoundParts): ToolRounds {
  const { toolServers, pipeline, chat, clock, log } = parts

  function serverOf(tool: unknown, call: Call): ToolServer | undefined {
    const name = (member: string) => {
      const value = memberOf(tool, member)
      return typeof value === 'string' ? value : undefined
    }
    return toolServers.find(
      { label: name('server_label'), connector_id: name('connector_id'), server_url: name('server_url') },
      call.caller,
    )
  }

  const listed: ToolRounds['listed'] = (request, call) =>
    Promise.all(
      mcpToolsOf(request as Pick<ResponsesRequest, 'tools'>).map(async ({ tool, at }) => {
        const server = serverOf(tool, call)
        if (!server) throw noServer(tool.server_label, at)
        return { label: tool.server_label, tool, at, server, tools: allowedBy(tool, await server.list(call)) }
      }),
    )

  return {
    listed,
    serves(body, call) {
      const tools = memberOf(body, 'tools')
      if (!Array.isArray(tools)) return false
      let isServed = false
      for (const [index, tool] of tools.entries()) {
        if (memberOf(tool, 'type') !== 'mcp') continue
        const label = memberOf(tool, 'server_label')
        if (serverOf(tool, call)) isServed = true
        else if (typeof label === 'string' && !memberOf(tool, 'server_url') && !memberOf(tool, 'connector_id')) {
          throw noServer(label, `tools[${index}]`)
        }
      }
      return isServed
    },

    async run({ clientRequest, sent, call, whole, admit, store, isStored }) {
      const { plan } = call
      if (!plan) throw new Error('A request was decoded before its model was authorized.')
      const servers = await listed(clientRequest, call)
      const expanded = withFunctions(clientRequest, new Map(servers.map(({ label, tools }) => [label, tools])))
      const translated = (items: readonly unknown[]) =>
        translatedRequest({ ...expanded, input: [...sent.input, ...(items as InputItem[])] }, sent.before)
      const approvals = approvedCalls(placed(sent))
      const hasMade = approvals.length > 0
      const { request, names } = translated([])
      const head = { id: `resp_${randomAlphanumerics(24)}`, created: unixSeconds(clock), model: plan.model.id }
      const needs = new Map(servers.map(({ label, tool, tools }) => [label, waitsFor(tool, tools)]))
      const encoder = createResponsesEncoder({
        head,
        clientRequest: withoutSecrets(clientRequest),
        request,
        names,
        store,
        isStored,
        clock,
        needs,
      })
      const { rounds } = encoder
      if (!rounds) throw new Error('A compaction calls no tools.')
      const { mcp, items } = rounds
      const { max_tool_calls: max_calls } = clientRequest
      const bounds = createRoundLimits({ limits: toolServers.limits(), call, max_calls, clock })
      let isOver = false
      /** The items before those of this round. */
      let start = 0
      let first = 0
      /** Events before those of the next part. */
      let prefix = encoder.begin()
      let usage: Usage | undefined
      let failure: GatewayError | undefined

      function end(): void {
        if (isOver) return
        isOver = true
        bounds.end()
        for (const work of whole.atEnd ?? []) work({ call: whole } as CallRecord)
      }

      const outcomeOf = ({ item }: Open<McpCallItem>) =>
        bounds.callTool(
          servers.find(({ label }) => label === item.server_label),
          item.name,
          item.arguments,
        )

      async function* resultsOf(open: Open<McpCallItem>[]) {
        const outcomes = open.map(outcomeOf)
        for (const outcome of outcomes) outcome.catch(() => {}) // whoever waits for it gets the error
        for (const [index, at] of open.entries()) yield mcp.result(at, (await outcomes[index]) ?? NO_RESULT)
      }

      const writer: ResponseEncoder = {
        whole: encoder.whole,
        includesUsage: true,
        encode(batch) {
          const text = encoder.encode(batch)
          return text === '' ? '' : takePrefix() + text
        },
        end(counted) {
          usage = counted && usage ? addedUsage(usage, counted) : (counted ?? usage)
          return takePrefix()
        },
        fail(error) {
          failure = error
          return takePrefix() + encoder.fail(error)
        },
      }

      function takePrefix(): string {
        const events = prefix
        prefix = ''
        return events
      }

      /** A model that must call a tool would never end, and the last round must. */
      function roundRequest(round: number): ChatRequest {
        const { request } = translated(items)
        if (round > 1 && request.tool_choice !== undefined) request.tool_choice = 'auto'
        if (request.tools && bounds.isLast(round)) request.tool_choice = 'none'
        return { ...request, stream: true }
      }

      function send(round: number): SentStream {
        start = items.length
        const prepared = pipeline.prepareStream(
          { ...chat.stream, is_hedged: false },
          round === 1 ? call : bounds.ownCall(`round${round}`),
          {
            family: 'chatcompat-response',
            request: roundRequest(round),
            answer: head,
            writer: () => writer,
            errorForClient: (thrown, request) =>
              thrown instanceof GatewayError ? errorForClient(thrown, request) : thrown,
          },
        )
        return prepared.send()
      }

      let current: SentStream
      async function* generate(): AsyncGenerator<string> {
        try {
          for (let round = 1; ; round++) {
            for await (const part of current.parts) yield String(part)
            if (failure) return
            const open = mcp.takeCalls()
            yield* resultsOf(open)
            const isForClient = items.slice(start).some(({ type }) => FOR_CLIENT.has(type))
            if (open.length === 0 || isForClient || bounds.isOver(round)) break
            bounds.signal.throwIfAborted()
            rounds?.next()
            current = send(round + 1)
          }
          const last = encoder.end(usage)
          await encoder.store?.()
          yield last
        } catch (thrown) {
          failure = asGatewayError(thrown, { log, request_id: call.request_id })
          yield encoder.fail(failure)
        } finally {
          end()
        }
      }

      try {
        await admit?.(whole)
        for (const { label, tools } of servers) if (!isListed(label, sent)) prefix += mcp.list(label, { tools })
        const approved = approvals.map(({ call: request }) => mcp.approved(request))
        for (const { events } of approved) prefix += events
        for await (const events of resultsOf(approved.map(({ at }) => at))) prefix += events
        first = items.length
        whenEnded(call, bounds.addCost)
        current = send(1)
        // Where an approved call was made, its result reaches the client whatever follows.
        await (clientRequest.stream || hasMade ? undefined : current.started)
      } catch (thrown) {
        end()
        throw thrown instanceof GatewayError ? errorForClient(thrown, request) : thrown
      }
      const { model, requested } = plan
      if (clientRequest.stream) {
        current.started.catch(end)
        const abandon = async () => {
          await current.abandon()
          end()
        }
        const started = hasMade ? Promise.resolve() : current.started
        return { model, requested, stream: { record: current.record, started, parts: generate(), abandon } }
      }
      for await (const _ of generate()) call.signal.throwIfAborted()
      const final = encoder.final()
      if ((failure && start === first && !hasMade) || !final) throw failure ?? new Error('The response has no end.')
      return { model, requested, body: encoder.visible(final) }
    },
  }
}

const NO_RESULT = { error: 'The call has no result.' }

const waitsFor = (tool: McpTool, tools: ListedTool[]) => (name: string) => {
  const found = tools.find((one) => one.name === name)
  return found !== undefined && waitsForApproval(tool, found)
}

const placed = ({ before, input }: Items) => [
  ...before.items.map((item) => ({ item, at: 'previous_response_id' })),
  ...input.map((item, index) => ({ item, at: `input[${index}]` })),
]

/** Whether the client has the list of a server, from an earlier response. */
const isListed = (label: string, { before, input }: Items): boolean =>
  [...before.items, ...input].some((item) => item.type === 'mcp_list_tools' && memberOf(item, 'server_label') === label)

function noServer(label: string, at: string): GatewayError {
  const param = `${at}.server_label`
  const message = `"${param}": there is no MCP server ${JSON.stringify(label.slice(0, 100))} for this token.`
  return invalidValue(param, message)
}
