/** Errors of the gateway and of servers in the form of MCP: a result with `isError`, or an error of JSON-RPC. */
import { ProtocolError } from '@modelcontextprotocol/server'
import { McpRefusal } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'

export const INVALID_PARAMS = -32602
const INTERNAL_ERROR = -32603
/** The range that JSON-RPC leaves to servers. */
const REFUSED = -32000

/** As an error of JSON-RPC; a server's own is passed on. */
export function protocolError(thrown: unknown): Error {
  if (thrown instanceof ProtocolError) return thrown
  if (thrown instanceof McpRefusal) return new ProtocolError(thrown.code, thrown.message, thrown.data)
  if (!(thrown instanceof GatewayError)) return thrown instanceof Error ? thrown : new Error(String(thrown))
  const { code, message, detail } = thrown
  const data = { code, ...(detail.retry_after !== undefined && { retry_after: detail.retry_after }) }
  return new ProtocolError(thrown.status >= 500 ? INTERNAL_ERROR : REFUSED, message, data)
}

/**
 * Of a call of a tool: what has failed at the server is a result, which the model reads and may act on; what the gateway
 * refuses is an error of the protocol, and is thrown.
 */
export function toolError(thrown: unknown): { content: { type: 'text'; text: string }[]; isError: true } {
  if (!(thrown instanceof GatewayError) || !AT_SERVER.has(thrown.code)) throw protocolError(thrown)
  return { content: [{ type: 'text', text: thrown.message }], isError: true }
}

const AT_SERVER: ReadonlySet<string> = new Set([
  'bad_upstream_response',
  'upstream_auth',
  'upstream_unreachable',
  'upstream_cut',
  'upstream_timeout',
])

/** A name that there is and that the caller may not use is unknown as well. */
export const unknown = (what: string, name: string) =>
  new ProtocolError(INVALID_PARAMS, `There is no ${what} ${JSON.stringify(name.slice(0, 200))} for this token.`)
