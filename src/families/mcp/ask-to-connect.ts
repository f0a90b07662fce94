/** Answers the call of a tool by a person who is not connected: the client opens the address, or shows it. */
import { type CallToolResult, inputRequired, type Server, type ServerContext } from '@modelcontextprotocol/server'
import type { NotConnected } from './connections.ts'

const ASKED = 'connect'
/** Of the only tool that such a server has in lists. */
export const CONNECT = 'connect'

/** What a list has in place of the tools of such a server. */
export const connectTool = (prefix: string, server: string) => ({
  name: `${prefix}${CONNECT}`,
  description: `The tools of "${server}" are there once you have connected your account. Call this to learn where.`,
  inputSchema: { type: 'object' as const },
})

/** Who calls it once more is connected: the lists are others now. */
export function announceConnected(server: Server): CallToolResult {
  void server.sendToolListChanged().catch(() => {})
  return { content: [{ type: 'text', text: 'Your account is connected: list the tools again.' }] }
}

/** A client that opens addresses is asked once; then, and all others, are told by a result that a model reads too. */
export function askToConnect({ address, message }: NotConnected, server: Server, { mcpReq }: ServerContext) {
  const wasAsked = mcpReq.inputResponses?.[ASKED] !== undefined
  if (address !== undefined && !wasAsked && server.getClientCapabilities()?.elicitation?.url) {
    return inputRequired({ inputRequests: { [ASKED]: inputRequired.elicitUrl({ message, url: address }) } })
  }
  return { content: [{ type: 'text', text: message }], isError: true } satisfies CallToolResult
}
