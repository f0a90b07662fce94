/** Reads tool choices: which tools may be called, and whether a choice names one of them. */
import { foundText } from '../../kit/diagnose.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { invalidValue } from '../../spec/error.ts'
import type { ChatRequest } from './canonical.ts'
import { refusedField } from './request-error.ts'

/** The name of an allowed tool, which has the form of an entry of `tools`, or only a name. */
export const nameOfAllowed = (tool: JsonRecord): unknown => (isRecord(tool.function) ? tool.function.name : tool.name)

/** The functions that may be called, and the choice among them, for providers that cannot choose among some of the tools. */
export function allowedFunctions({ tools = [], tool_choice: choice }: ChatRequest) {
  if (typeof choice !== 'object' || choice.type !== 'allowed_tools') return { functions: tools, choice }
  const { mode, tools: allowed } = choice.allowed_tools
  const names = new Set(allowed.map(nameOfAllowed))
  return { functions: tools.filter((tool) => names.has(tool.function.name)), choice: mode }
}

/** The error for a tool of a vendor, which other providers do not have. */
export const foreignTool = (param: string, type: string, instead: string) =>
  refusedField(param, `is "${type.slice(0, 60)}", a tool that only its own vendor supports; ${instead}`)

/**
 * Throws where a choice names no tool of the request: providers answer that each in its own way. `list`: the field with the
 * tools. A choice by something that is not a name is left to the provider.
 */
export function assertOffered(name: unknown, names: Set<unknown>, { param, list }: { param: string; list: string }) {
  if (typeof name !== 'string' || names.has(name)) return
  const message = `"${param}" must be the name of an entry of "${list}", not ${foundText(name)}.`
  throw invalidValue(param, message)
}
