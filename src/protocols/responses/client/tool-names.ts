/** Names of the client's tools for providers: a tool in a namespace becomes a function with a flat name. */
import { createHash } from 'node:crypto'
import type { ClientTool, InputItem } from './schema.ts'

/** A tool as its client names it. `tool_search`: the client itself searches for further tools. */
export type ToolIdentity = { type: 'function' | 'custom' | 'tool_search'; name: string; namespace?: string | undefined }

/** The type matters only for `tool_search`: history items identify all other tools by name and namespace. */
type Named = Pick<ToolIdentity, 'name' | 'namespace'> & { type?: ToolIdentity['type'] }

/** A tool of a request, and its place: `tools[3].tools[0]`. */
export type OfferedTool = {
  tool: ClientTool
  at: string
  namespace?: string
  /** The description of its namespace, on the first tool of each. */
  about?: string | undefined
}

/** The names of one request in a table. No name is ever parsed. */
export type ToolNames = ReturnType<typeof createToolNames>

/** The longest name, and the characters, that the APIs of OpenAI, Anthropic and Gemini all accept. */
const MAX_NAME_LENGTH = 64
const FORBIDDEN = /[^a-zA-Z0-9_-]/g
const HASH_LENGTH = 8

/** The client's own search for tools, which has an item type of its own. */
export const TOOL_SEARCH: ToolIdentity = { type: 'tool_search', name: 'tool_search' }

/** Tools without a namespace keep their names. The names of the others depend on their identity, not on their order. */
export function createToolNames(offered: OfferedTool[]) {
  const names = new Map<string, string>()
  const tools = new Map<string, ToolIdentity>()

  function claim(tool: ToolIdentity): string {
    const key = keyOf(tool)
    const known = names.get(key)
    if (known !== undefined) return known
    let name = tool.namespace === undefined ? tool.name : flatName(tool.namespace, tool.name, key)
    for (let attempt = 1; tools.has(name); attempt++) name = hashedName(name, `${key}${attempt}`)
    names.set(key, name)
    tools.set(name, tool)
    return name
  }

  const identities = offered.flatMap(identityOf)
  for (const tool of identities) if (tool.namespace === undefined) claim(tool)
  for (const tool of identities) claim(tool)
  return {
    /** The name for providers, of a tool in the request or of an earlier turn. */
    vendorName: ({ type = 'function', name, namespace }: Named) => claim({ type, name, namespace }),
    /** The tool behind a provider's name. An unknown name is a plain function. */
    toolOf: (name: string): ToolIdentity => tools.get(name) ?? { type: 'function', name },
  }
}

const keyOf = ({ type, name, namespace }: Named): string =>
  type === 'tool_search' ? type : JSON.stringify([namespace ?? null, name])

function identityOf({ tool: { type, name }, namespace }: OfferedTool): ToolIdentity[] {
  if (type === 'tool_search') return [TOOL_SEARCH]
  if ((type !== 'function' && type !== 'custom') || name === undefined) return []
  return [{ type, name, namespace }]
}

/** `crm` and `list` become `crm__list`. A hash keeps names distinct if characters were replaced or cut. */
function flatName(namespace: string, name: string, key: string): string {
  const plain = `${namespace}__${name}`
  const clean = plain.replaceAll(FORBIDDEN, '_').replace(/^(?![a-zA-Z_])/, '_') // Gemini requires a letter or "_" first
  return clean === plain && clean.length <= MAX_NAME_LENGTH ? clean : hashedName(clean, key)
}

function hashedName(name: string, key: string): string {
  const hash = createHash('sha256').update(key).digest('hex').slice(0, HASH_LENGTH)
  return `${name.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${hash}`
}

/**
 * All tools of a request in order, including those in namespaces and those that input items add. The last definition
 * of a tool wins.
 */
export function offeredTools(tools: ClientTool[], items: { item: InputItem; at: string }[]): OfferedTool[] {
  const offered = new Map<string, OfferedTool>()
  const addAll = (list: OfferedTool[]) => {
    for (const one of list) offered.set(offerKey(one), one)
  }
  addAll(flatTools(tools, 'tools'))
  for (const { item, at } of items) {
    if (item.type === 'additional_tools' || item.type === 'tool_search_output')
      addAll(flatTools(item.tools, `${at}.tools`))
  }
  return [...offered.values()]
}

/** A vendor's own tool has no name and is identified by its place. */
const offerKey = ({ tool: { type, name }, at, namespace }: OfferedTool): string =>
  (type === 'function' || type === 'custom') && name !== undefined ? keyOf({ name, namespace }) : at

/** Flattens namespaces: their tools take their place. */
export function flatTools(tools: ClientTool[], at: string): OfferedTool[] {
  return tools.flatMap((tool, index): OfferedTool[] => {
    const place = `${at}[${index}]`
    const { type, name: namespace, description: about, tools: inner } = tool
    if (type !== 'namespace' || namespace === undefined || inner === undefined) return [{ tool, at: place }]
    return inner.map((one, at) => ({
      tool: one,
      at: `${place}.tools[${at}]`,
      namespace,
      about: at === 0 ? about : undefined,
    }))
  })
}
