/** Names of tools, prompts and resources where several servers are joined: `server__tool` and `server+scheme:rest`. */
import { isRecord } from '../../kit/json.ts'

const SEPARATOR = '__'

/** The name by which resources are counted, priced, limited and allowed: the addresses of one server are without number. */
export const RESOURCES = 'resources/read'
/** The same of a prompt. No tool has such a name. */
export const promptName = (name: string): string => `prompts/${name}`

/** The same of anything that a server has, a tool by its own name, among that of all servers. */
export const toolId = (server: string, tool: string): string => `mcp/${server}/${tool}`

export const joinedName = (server: string, name: string): string => `${server}${SEPARATOR}${name}`

/** The server, and its own name for it; undefined: the name has no server. Names of servers have no underscore. */
export function splitName(name: string): { server: string; name: string } | undefined {
  const at = name.indexOf(SEPARATOR)
  return at < 1 ? undefined : { server: name.slice(0, at), name: name.slice(at + SEPARATOR.length) }
}

export const joinedUri = (server: string, uri: string): string => `${server}+${uri}`

export function splitUri(uri: string): { server: string; uri: string } | undefined {
  const at = uri.indexOf('+')
  return at < 1 ? undefined : { server: uri.slice(0, at), uri: uri.slice(at + 1) }
}

/** The result of a server with the addresses of resources as its client may read them. */
export function withJoinedUris(server: string, result: Record<string, unknown>): Record<string, unknown> {
  const { content, contents, messages } = result
  return {
    ...result,
    ...(Array.isArray(content) && { content: content.map((block) => joinedBlock(server, block)) }),
    ...(Array.isArray(contents) && { contents: contents.map((one) => withUri(server, one)) }),
    ...(Array.isArray(messages) && {
      messages: messages.map((one) => (isRecord(one) ? { ...one, content: joinedBlock(server, one.content) } : one)),
    }),
  }
}

function joinedBlock(server: string, block: unknown): unknown {
  if (!isRecord(block)) return block
  if (block.type === 'resource_link') return withUri(server, block)
  return block.type === 'resource' ? { ...block, resource: withUri(server, block.resource) } : block
}

const withUri = (server: string, one: unknown): unknown =>
  isRecord(one) && typeof one.uri === 'string' ? { ...one, uri: joinedUri(server, one.uri) } : one
