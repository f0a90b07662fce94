/** Calls of tools in a streamed response: open side by side, each named by its place in the output. */

import { freeText } from './responses-custom.ts'
import type { CallItem, CustomCallItem, Desk, Open, Status } from './responses-items.ts'

type OpenCall = Open<CallItem | CustomCallItem> & { text: string }

export type CallStream = {
  isOpen(index: number): boolean
  callId(index: number): string | undefined
  /** Whether this call was told to its end. */
  isTold(index: number): boolean
  open(index: number, call_id: string, name: string): string
  add(index: number, text: string): string
  /** A client can run these now: their arguments are whole. */
  closeComplete(): string
  closeAll(status: Status): string
}

/** `customs`: the names of tools that take free text. */
export function createCallStream(desk: Desk, customs: Set<string>): CallStream {
  const calls = new Map<number, OpenCall>()
  const told = new Set<number>()

  function add(at: OpenCall, text: string): string {
    if (text === '') return ''
    at.text += text
    // The text of a custom tool stands within JSON here: it is told when it is whole.
    if (at.item.type === 'custom_tool_call') return ''
    at.item.arguments = at.text
    return desk.event('response.function_call_arguments.delta', `${at.place},"delta":${JSON.stringify(text)}`)
  }

  function close(index: number, at: OpenCall, status: Status): string {
    calls.delete(index)
    told.add(index)
    at.item.status = status
    if (at.item.type === 'custom_tool_call') {
      at.item.input = freeText(at.text)
      const input = JSON.stringify(at.item.input)
      const delta = desk.event('response.custom_tool_call_input.delta', `${at.place},"delta":${input}`)
      return delta + desk.event('response.custom_tool_call_input.done', `${at.place},"input":${input}`) + desk.done(at)
    }
    // Clients parse the text in any case.
    const filled = at.text.trim() === '' ? add(at, '{}') : ''
    const fields = `${at.place},"name":${JSON.stringify(at.item.name)},"arguments":${JSON.stringify(at.text)}`
    return filled + desk.event('response.function_call_arguments.done', fields) + desk.done(at)
  }

  return {
    isOpen: (index) => calls.has(index),
    callId: (index) => calls.get(index)?.item.call_id,
    isTold: (index) => told.has(index),
    open(index, call_id, name) {
      const type = customs.has(name) ? 'custom_tool_call' : 'function_call'
      const named = { id: desk.newId(type, desk.output.length), call_id, name, status: 'in_progress' } as const
      const item: CallItem | CustomCallItem =
        type === 'function_call' ? { type, ...named, arguments: '' } : { type, ...named, input: '' }
      const at = { ...desk.open(item), text: '' }
      calls.set(index, at)
      return desk.added(at)
    },
    add(index, text) {
      const at = calls.get(index)
      return at ? add(at, text) : ''
    },
    closeComplete() {
      let events = ''
      for (const [index, at] of calls) if (isComplete(at.text)) events += close(index, at, 'completed')
      return events
    },
    closeAll(status) {
      let events = ''
      for (const [index, at] of calls) events += close(index, at, isComplete(at.text) ? 'completed' : status)
      return events
    },
  }
}

function isComplete(text: string): boolean {
  if (!text.trimEnd().endsWith('}')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
