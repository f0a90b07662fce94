/** The bounds of one response whose tools the gateway calls: rounds of the model, calls of tools, time and cost. */
import type { Call, CallRecord } from '../../calls/call.ts'
import type { ClientRequest } from '../../calls/endpoint.ts'
import type { Clock } from '../../kit/clock.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import type { ListedTool } from '../../protocols/responses/client/mcp-tools.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ToolServer, ToolServers } from '../shared/tool-servers.ts'

type LimitParts = {
  limits: ReturnType<ToolServers['limits']>
  call: ClientRequest
  /** As the client limits them. */
  max_calls?: number | undefined
  clock: Clock
}
/** A server of a request, and those of its tools that the request allows. */
export type ListedServer = { label: string; server: ToolServer; tools: ListedTool[] }

export function createRoundLimits({ limits, call, max_calls, clock }: LimitParts) {
  const late = new AbortController()
  const end = clock.after(limits.max_seconds * 1000, () => late.abort(tooLate(limits.max_seconds)))
  const signal = AbortSignal.any([call.signal, late.signal])
  const most = Math.min(limits.max_calls, max_calls ?? limits.max_calls)
  let [calls, cost] = [0, 0]

  const addCost = ({ entries = [] }: CallRecord) => {
    for (const { amount } of entries) cost += amount ?? 0
  }

  const ownCall = (suffix: string): Call => ({
    request_id: `${call.request_id}-${suffix}`,
    caller: call.caller,
    signal,
    arrived: clock.steady(),
    is_detached: true,
    atEnd: [addCost],
    ...(call.end_user !== undefined && { end_user: call.end_user }),
    ...(call.session !== undefined && { session: call.session }),
    ...(call.options && { options: call.options }),
    ...(call.trace && { trace: call.trace }),
    ...(call.capture && { capture: freshCapture(call.capture) }),
  })

  return {
    signal,
    addCost,
    /** Of a round, or of a tool. */
    ownCall,
    async callTool(server: ListedServer | undefined, name: string, given: string) {
      if (++calls > most) return { error: `No more than ${most} tools may be called for this response.` }
      const args = parseJson(given.trim() === '' ? '{}' : given)
      if (!server?.tools.some((tool) => tool.name === name)) return { error: `There is no tool "${name}".` }
      if (!isRecord(args)) return { error: 'The arguments of the call are no JSON object.' }
      return await server.server.call(name, args, ownCall(`tool${calls}`))
    },
    /** Whether the model must answer without tools in this round. */
    isLast: (round: number) => round >= limits.max_rounds || calls >= most || cost >= limits.max_cost,
    isOver: (round: number) => round >= limits.max_rounds,
    end,
  }
}

const freshCapture = ({ max_characters, span_characters, is_recorded }: NonNullable<Call['capture']>) => ({
  max_characters,
  ...(span_characters !== undefined && { span_characters }),
  ...(is_recorded !== undefined && { is_recorded }),
})

function tooLate(seconds: number): GatewayError {
  const message = `The response and its tools took longer than ${seconds} s (mcp.max_chat_seconds).`
  return new GatewayError('upstream_timeout', message)
}
