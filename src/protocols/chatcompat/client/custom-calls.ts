/** Encodes calls of custom tools, which the inner chat type holds as functions, for the client that offered the tools. */
import type { ToolCall as PublicToolCall } from '../../../spec/chat-completion.ts'
import { type ChunkChoice, CUSTOM, type Tool, type ToolCall } from '../../shared/canonical.ts'
import { createFreeTextReader, type FreeTextReader, freeText } from '../../shared/custom-tools.ts'

/** The names of the custom tools among the tools of a request; undefined if there are none. */
export function customNames(tools: Tool[]): ReadonlySet<string> | undefined {
  const names = tools.flatMap((tool) => (tool[CUSTOM] ? [tool.function.name] : []))
  return names.length === 0 ? undefined : new Set(names)
}

/** A call of a whole response. */
export function publicCall(call: ToolCall, customs: ReadonlySet<string>): PublicToolCall {
  const { function: called, ...rest } = call
  const { name = '', arguments: text } = called
  return customs.has(name) ? { ...rest, type: 'custom', custom: { name, input: freeText(text) } } : call
}

type Calls = Map<number, FreeTextReader>

export function createCustomCalls(customs: ReadonlySet<string>) {
  const choices = new Map<number, Calls>()

  function deltaOf(call: ToolCall, open: Calls): PublicToolCall | undefined {
    const { index = 0, function: called, ...rest } = call
    const { name, arguments: text } = called
    if (name !== undefined && customs.has(name)) {
      const reader = createFreeTextReader()
      open.set(index, reader)
      return { ...rest, index, type: 'custom', custom: { name, input: reader.add(text) } }
    }
    const reader = open.get(index)
    if (!reader) return call
    const input = reader.add(text)
    return input === '' ? undefined : { index, custom: { input } }
  }

  return {
    /** Replaces the calls in the delta of a choice. */
    take(choice: ChunkChoice): void {
      const { delta, finish_reason } = choice
      if (!delta.tool_calls && !finish_reason) return
      const open = choices.get(choice.index) ?? new Map()
      choices.set(choice.index, open)
      const calls = (delta.tool_calls ?? []).flatMap((call) => deltaOf(call, open) ?? [])
      if (finish_reason) {
        for (const [index, reader] of open) {
          const input = reader.end()
          if (input !== '') calls.push({ index, custom: { input } })
        }
        open.clear()
      }
      if (calls.length > 0) (delta as { tool_calls?: PublicToolCall[] }).tool_calls = calls
      else delete delta.tool_calls
    },
  }
}
