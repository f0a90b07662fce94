/** Encodes tool calls of a streamed response. Several may be open at once; each is named by its place in the output. */
import { parseExactJson } from '../../../kit/json.ts'
import { freeText } from '../../shared/custom-tools.ts'
import { isWholeObject } from '../../shared/upstream.ts'
import type { CallItem, CustomCallItem, ItemEvents, Open, Status, ToolSearchItem } from './items.ts'
import { isMcpItem, type McpItem, type McpItems } from './mcp-items.ts'
import type { ToolIdentity, ToolNames } from './tool-names.ts'

type AnyCall = CallItem | CustomCallItem | ToolSearchItem
type OpenCall = Open<AnyCall | McpItem> & { text: string }

/** Calls are sent under the client's name of the tool, whatever name the provider received. */
export function createCallStream(itemEvents: ItemEvents, names: ToolNames, mcp: McpItems) {
  const calls = new Map<number, OpenCall>()
  const closed = new Set<number>()

  function add(at: OpenCall, text: string): string {
    if (text === '') return ''
    at.text += text
    if (isMcpItem(at.item)) return mcp.add(at.item, at.place, text)
    // The text of a custom tool is inside JSON here, and a search has no delta events. Both are sent when they are
    // complete.
    if (at.item.type !== 'function_call') return ''
    at.item.arguments = at.text
    return itemEvents.event('response.function_call_arguments.delta', `${at.place},"delta":${JSON.stringify(text)}`)
  }

  function close(index: number, at: OpenCall, status: Status): string {
    calls.delete(index)
    closed.add(index)
    if (isMcpItem(at.item)) return mcp.close({ ...at, item: at.item }, status)
    at.item.status = status
    if (at.item.type === 'custom_tool_call') {
      at.item.input = freeText(at.text)
      const input = JSON.stringify(at.item.input)
      const delta = itemEvents.event('response.custom_tool_call_input.delta', `${at.place},"delta":${input}`)
      return (
        delta +
        itemEvents.event('response.custom_tool_call_input.done', `${at.place},"input":${input}`) +
        itemEvents.done(at)
      )
    }
    if (at.item.type === 'tool_search_call') {
      at.item.arguments = parseExactJson(at.text) ?? {}
      return itemEvents.done(at)
    }
    // Clients parse the text in any case.
    const filled = at.text.trim() === '' ? add(at, '{}') : ''
    const fields = `${at.place},"name":${JSON.stringify(at.item.name)},"arguments":${JSON.stringify(at.text)}`
    return filled + itemEvents.event('response.function_call_arguments.done', fields) + itemEvents.done(at)
  }

  return {
    isOpen: (index: number) => calls.has(index),
    callId(index: number) {
      const item = calls.get(index)?.item
      return item && (isMcpItem(item) ? item.id : item.call_id)
    },
    /** Whether the last event of this call has been sent. */
    isClosed: (index: number) => closed.has(index),
    open(index: number, call_id: string, vendorName: string) {
      const started = mcp.start(names.toolOf(vendorName), call_id)
      if (started) {
        calls.set(index, { ...started.at, text: '' })
        return started.events
      }
      const item = startedCall(call_id, names.toolOf(vendorName), (type) =>
        itemEvents.newId(type, itemEvents.output.length),
      )
      const at = { ...itemEvents.open(item), text: '' }
      calls.set(index, at)
      return itemEvents.added(at)
    },
    add(index: number, text: string) {
      const at = calls.get(index)
      return at ? add(at, text) : ''
    },
    /** Closed as soon as the arguments are complete, so that a client can run the calls. */
    closeComplete() {
      let events = ''
      for (const [index, at] of calls) if (isWholeObject(at.text)) events += close(index, at, 'completed')
      return events
    },
    closeAll(status: Status) {
      let events = ''
      for (const [index, at] of calls) events += close(index, at, isWholeObject(at.text) ? 'completed' : status)
      return events
    },
  }
}

/** The item of a call as its first event holds it. */
function startedCall(
  call_id: string,
  { type, name, namespace }: ToolIdentity,
  newId: (type: AnyCall['type']) => string,
): AnyCall {
  const status = 'in_progress'
  if (type === 'tool_search') {
    const id = newId('tool_search_call')
    return { type: 'tool_search_call', id, call_id, execution: 'client', arguments: {}, status }
  }
  const named = { call_id, name, ...(namespace === undefined ? {} : { namespace }), status } as const
  if (type === 'custom') return { type: 'custom_tool_call', id: newId('custom_tool_call'), ...named, input: '' }
  return { type: 'function_call', id: newId('function_call'), ...named, arguments: '' }
}
