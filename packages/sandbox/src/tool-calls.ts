/** Decides which tools the sandbox calls, and generates their arguments. */
import { isRecord } from '../../../src/kit/json.ts'
import type { ChatRequest } from '../../../src/providers/provider.ts'
import type { GatewayError } from '../../../src/spec/error.ts'
import { invalidRequest } from './invalid-request.ts'
import { sampleFromSchema } from './json-schema-sample.ts'
import type { Hints } from './json-schema-scalars.ts'
import { hintsOf, type Prompt } from './prompt.ts'
import type { Random } from './random.ts'
import { isStopWord, splitWords, stem, termsOf } from './terms.ts'

export type PlannedCall = { id: string; name: string; arguments: string }

type Tool = { name: string; description: string; parameters: unknown; param: string }
type Choice = { mode: 'none' | 'auto' | 'required'; tools: Tool[]; isNamed: boolean }

/** Words in the names of many tools, which therefore identify none of them. */
const COMMON_NAME_PARTS = new Set('get set fetch run make call use tool function current do'.split(' '))

/** Empty when the answer is text. Throws `upstream_invalid_request` for requests that no provider can serve. */
export function planToolCalls(
  request: ChatRequest,
  prompt: Prompt,
  { random, index }: { random: Random; index: number },
): PlannedCall[] {
  const choice = readChoice(request)
  if (choice.mode === 'none' || choice.tools.length === 0) return []
  if (choice.mode === 'auto' && prompt.results.length > 0) return []
  const requested = requestedTools(choice.tools, prompt.question)
  const chosen = requested.length === 0 && choice.mode === 'required' ? choice.tools.slice(0, 1) : requested
  const hints = hintsOf(chosen.length > 0 ? prompt.question : '', index)
  const isSingle = request.parallel_tool_calls === false || choice.isNamed
  return (isSingle ? chosen.slice(0, 1) : chosen).map((tool) => ({
    id: `call_${random.alphanumerics(24)}`,
    name: tool.name,
    arguments: argumentsFor(tool, random, hints),
  }))
}

function readChoice(request: ChatRequest): Choice {
  const tools: Tool[] = (request.tools ?? []).map(({ function: { name, description, parameters } }, at) => ({
    name,
    description: description ?? '',
    parameters,
    param: `tools[${at}].function.parameters`,
  }))
  // The older form of `tools`; the answer uses the newer form.
  for (const [at, { name, description, parameters }] of (request.functions ?? []).entries()) {
    tools.push({ name, description: description ?? '', parameters, param: `functions[${at}].parameters` })
  }
  const requested = request.tool_choice ?? request.function_call ?? 'auto'
  if (typeof requested === 'string') {
    if (requested === 'required' && tools.length === 0) reject('tool_choice is "required", but there are no tools')
    return { mode: requested, tools, isNamed: false }
  }
  if ('allowed_tools' in requested) {
    const { mode, tools: allowed } = requested.allowed_tools
    const names = allowed.map((tool) => (isRecord(tool.function) ? tool.function.name : tool.name))
    const chosen = tools.filter((tool) => names.includes(tool.name))
    if (mode === 'required' && chosen.length === 0) reject('tool_choice allows none of the tools')
    return { mode, tools: chosen, isNamed: false }
  }
  const name = 'function' in requested ? requested.function.name : requested.name
  const named = tools.filter((tool) => tool.name === name).slice(0, 1)
  if (named.length === 0) reject('tool_choice names a function that is not among the tools')
  return { mode: 'required', tools: named, isNamed: true }
}

function reject(why: string): never {
  throw invalidRequest(`${why}.`, 'tool_choice')
}

/** The tools that a question mentions by name, in its order; else the one whose description fits best. */
function requestedTools(tools: Tool[], question: string): Tool[] {
  const text = question.slice(0, 20_000).toLowerCase()
  const stems = splitWords(text).map(stem)
  const requested = new Set(stems)
  const named: { tool: Tool; at: number }[] = []
  let best: { tool: Tool; shared: number } | undefined
  for (const tool of tools) {
    const at = positionOfName(tool.name, text, stems)
    if (at !== -1) named.push({ tool, at })
    const shared = new Set(
      termsOf(tool.description).filter((term) => requested.has(term) && !COMMON_NAME_PARTS.has(term)),
    ).size
    if (shared >= 2 && shared > (best?.shared ?? 0)) best = { tool, shared }
  }
  if (named.length) return named.sort((one, other) => one.at - other.at).map(({ tool }) => tool)
  return best ? [best.tool] : []
}

/** The position of the name, verbatim or as words (`get_weather`: "weather"); -1 when the text does not have it. */
function positionOfName(name: string, text: string, stems: string[]): number {
  if (text.includes(name.toLowerCase()) && name.length > 2) {
    return splitWords(text.slice(0, text.indexOf(name.toLowerCase()))).length
  }
  // Splits camelCase and snake_case.
  const parts = splitWords(name.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2').replaceAll('_', ' '))
    .map((part) => part.toLowerCase())
    .filter((part) => !COMMON_NAME_PARTS.has(part) && !isStopWord(part))
    .map(stem)
  if (parts.length === 0 || !parts.every((part) => stems.includes(part))) return -1
  return Math.min(...parts.map((part) => stems.indexOf(part)))
}

function argumentsFor(tool: Tool, random: Random, hints: Hints): string {
  const schema = isRecord(tool.parameters) ? { type: 'object', ...tool.parameters } : { type: 'object' }
  const sample = sampleFromSchema(schema, random, hints)
  if ('problem' in sample) throw schemaError(sample.problem, tool.param)
  return JSON.stringify(sample.value)
}

export const schemaError = (problem: string, param: string): GatewayError =>
  invalidRequest(`The sandbox cannot answer by this schema: ${problem}.`, param)
