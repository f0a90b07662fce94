/** Chat completions whose MCP tools the gateway calls itself: the client gets the last answer, with the usage of all rounds. */
import { whenEnded } from '../../calls/call.ts'
import type { ClientRequest } from '../../calls/endpoint.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { parseChatRequest } from '../../protocols/chatcompat/client/request.ts'
import { chatcompatWriter } from '../../protocols/chatcompat/client/response.ts'
import { waitsForApproval } from '../../protocols/responses/client/mcp-tools.ts'
import type { ChatCompletion, ChatRequest } from '../../protocols/shared/canonical.ts'
import { asGatewayError, GatewayError } from '../../spec/error.ts'
import { addedUsage, type Usage } from '../../spec/usage.ts'
import type { ToolServers } from '../shared/tool-servers.ts'
import { askChat } from './ask-chat.ts'
import type { Chat } from './chat.ts'
import type { Deferred } from './dialects/dialect.ts'
import { createRoundLimits, type ListedServer } from './round-limits.ts'
import type { ToolRounds } from './tool-rounds.ts'

type ChatToolParts = {
  toolServers: ToolServers
  toolRounds: ToolRounds
  pipeline: Pipeline
  chat: Chat
  clock: Clock
  log: Log
  settings: { delta_mirror: boolean }
}

type Named = { server: ListedServer; tool: string }
type Answer = { completion: ChatCompletion; usage: Usage }

/** Providers accept no longer ones. */
const MAX_NAME = 64

export function createChatTools(parts: ChatToolParts) {
  const { toolServers, toolRounds, pipeline, chat, clock, log, settings } = parts

  async function run(body: Record<string, unknown>, call: ClientRequest): Promise<Deferred> {
    const { plan } = call
    if (!plan) throw new Error('A request was decoded before its model was authorized.')
    const servers = await toolRounds.listed(body, call)
    for (const { tool, at, tools } of servers) {
      if (!tools.some((one) => waitsForApproval(tool, one))) continue
      const param = `${at}.require_approval`
      const message = `"${param}" must be "never": chat completions have no items for approval, which /v1/responses has.`
      throw new GatewayError('unsupported_value', message, { param })
    }
    const { functions, named } = functionsOf(servers)
    const own = (body.tools as unknown[]).filter((tool) => memberOf(tool, 'type') !== 'mcp')
    const { stream, stream_options, ...request } = parseChatRequest({ ...body, tools: [...own, ...functions] }, call)
    if ((request.n ?? 1) > 1) {
      throw new GatewayError('unsupported_value', '"n" must be 1 with tools of the type "mcp".', { param: 'n' })
    }
    if (functions.length === 0 && own.length === 0) delete request.tools
    const head = { id: `chatcmpl-${randomAlphanumerics(24)}`, created: unixSeconds(clock), model: plan.model.id }
    const limits = createRoundLimits({ limits: toolServers.limits(), call, clock })
    const answers = rounds()

    async function* rounds(): AsyncGenerator<Answer | undefined> {
      let messages = request.messages
      let sum: Usage | undefined
      for (let round = 1; ; round++) {
        limits.signal.throwIfAborted()
        const input: ChatRequest = { ...request, messages }
        if (round > 1 && input.tool_choice !== undefined) input.tool_choice = 'auto'
        if (input.tools && limits.isLast(round)) input.tool_choice = 'none'
        const { completion, usage } = await ask(input, round)
        sum = sum ? addedUsage(sum, usage) : usage
        const [choice] = completion.choices
        const calls = choice?.message.tool_calls ?? []
        const clients = calls.filter(({ function: { name = '' } }) => !named.has(name))
        if (!choice || calls.length === clients.length || clients.length > 0 || limits.isOver(round)) {
          if (choice && calls.length > 0) {
            choice.message.tool_calls = clients
            if (clients.length === 0) delete choice.message.tool_calls
            if (clients.length === 0) choice.finish_reason = 'stop'
          }
          yield { completion, usage: sum }
          return
        }
        yield undefined
        const results = await Promise.all(
          calls.map(async (one, at) => {
            const { name = '', arguments: given = '' } = one.function
            one.id ??= `call_${round}_${at}`
            const found = named.get(name)
            const outcome = await limits.callTool(found?.server, found?.tool ?? name, given)
            const content = 'error' in outcome ? `Error: ${outcome.error}` : outcome.output
            return { role: 'tool' as const, tool_call_id: one.id, content }
          }),
        )
        messages = [
          ...messages,
          { ...choice.message, role: 'assistant' as const } as ChatRequest['messages'][number],
          ...results,
        ]
      }
    }

    /** What is encoded for the client is the last answer only. */
    function ask(input: ChatRequest, round: number): Promise<Answer> {
      if (round === 1) whenEnded(call, limits.addCost)
      const own = round === 1 ? call : limits.ownCall(`round${round}`)
      return askChat({ pipeline, chat }, own, { family: 'chatcompat', answer: head, request: input })
    }

    const writer = chatcompatWriter(settings)(head, { ...request, ...(stream_options && { stream_options }) })
    const { model, requested } = plan

    async function* events(first: Answer | undefined): AsyncGenerator<string> {
      try {
        const { completion, usage } = first ?? (await lastOf(answers))
        const [choice] = completion.choices
        if (choice) {
          const { message, finish_reason, index } = choice
          const delta = {
            ...message,
            ...(message.tool_calls && { tool_calls: message.tool_calls.map((one, at) => ({ index: at, ...one })) }),
          }
          yield writer.encode([{ choices: [{ index, delta, finish_reason: null }] } as never])
          yield writer.encode([{ choices: [{ index, delta: {}, finish_reason }] } as never])
        }
        yield writer.end(usage)
      } catch (thrown) {
        yield writer.fail(asGatewayError(thrown, { log, request_id: call.request_id }))
      } finally {
        limits.end()
      }
    }

    try {
      // Until the model has answered once, an error has its own status.
      const { value: first } = await answers.next()
      if (stream) return { model, requested, events: events(first ?? undefined) }
      const { completion, usage } = first ?? (await lastOf(answers))
      limits.end()
      return { model, requested, body: writer.whole(completion, usage) }
    } catch (thrown) {
      limits.end()
      throw thrown
    }
  }

  return (body: unknown, call: ClientRequest): Promise<Deferred> | undefined => {
    if (!isRecord(body) || !Array.isArray(body.tools)) return undefined
    return toolRounds.serves(body, call) ? run(body, call) : undefined
  }
}

async function lastOf(answers: AsyncGenerator<Answer | undefined>): Promise<Answer> {
  for await (const answer of answers) if (answer) return answer
  throw new Error('The rounds have no end.')
}

/** Names that providers accept and that differ: several servers may have a tool of one name. */
function functionsOf(servers: ListedServer[]) {
  const named = new Map<string, Named>()
  const functions = servers.flatMap((server) =>
    server.tools.map(({ name: tool, description, input_schema: parameters }) => {
      const plain = `${server.label}__${tool}`.replaceAll(/[^\w-]/g, '_').slice(0, MAX_NAME)
      const name = named.has(plain) ? `${plain.slice(0, MAX_NAME - 8)}_${named.size}` : plain
      named.set(name, { server, tool })
      return { type: 'function', function: { name, ...(description !== undefined && { description }), parameters } }
    }),
  )
  return { functions, named }
}
