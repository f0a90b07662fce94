/**
 * The model behind every provider of the matrix, whatever its protocol. It responds to the question, and fails on
 * request.
 */
import type { JsonSchema, Picture, Result, Tool } from './types.ts'

/** A request as a provider decoded it. */
export type ReceivedRequest = {
  system: string
  /** The text of the last user message. */
  question: string
  pictures: Picture[]
  /** The tool results after it. */
  results: Result[]
  /** The number of messages. */
  turns: number
  /** The whole history, in order. */
  history: Line[]
  tools: Tool[]
  /** A call is forced: of any tool, or of this one. */
  demanded: true | string | undefined
  schema: JsonSchema | undefined
  is_thinking: boolean
  max_tokens: number | undefined
  stops: string[]
}

/** A turn without its encoding: images by their data, calls and results by tool names. */
export type Line =
  | { role: 'user'; text: string; pictures: string[] }
  | { role: 'assistant'; text: string; calls: { name: string; args: unknown }[] }
  | { role: 'results'; results: { name: string; text: string }[] }

/** Drops empty lines, and joins consecutive lines of one role. */
export function linesOf(pieces: Line[]): Line[] {
  const lines: Line[] = []
  for (const piece of pieces) {
    const last = lines.at(-1)
    if (piece.role === 'results' && last?.role === 'results') last.results.push(...piece.results)
    else if (piece.role === 'assistant' && last?.role === 'assistant') {
      last.text += piece.text
      last.calls.push(...piece.calls)
    } else if (piece.role !== 'results' || piece.results.length > 0) lines.push(structuredClone(piece))
  }
  return lines
}

export type ScriptedResponse = {
  /** Pieces of a few characters each, as they are streamed. */
  reasoning: string[]
  text: string[]
  calls: { id: string; name: string; pieces: string[] }[]
  finish: 'stop' | 'length' | 'tool_calls' | 'stop_sequence'
  /** The sequence that ended it. */
  stop: string | undefined
  usage: { input: number; cached: number; output: number; reasoning: number }
  faults: Faults
}

/**
 * The faults that the last message requests with `@sandbox key=value ...`. The built-in sandbox supports the same
 * keys.
 */
export type Faults = { status?: number; cut_after?: number; hang_after?: number; error_after?: number; tokens?: number }

export const INPUT = 40
export const CACHED = 12
export const THOUGHT = 'The vendor thinks about it first, and then it speaks.'

export function respond(received: ReceivedRequest): ScriptedResponse {
  const { question, faults } = withoutFaults(received.question)
  const calls = requestedTools(received, question).map(({ name, parameters }, at) => ({
    id: `call_${at + 1}_${name}`,
    name,
    pieces: piecesOf(JSON.stringify(sampleOf(parameters))),
  }))
  const reasoning = received.is_thinking ? piecesOf(THOUGHT) : []
  const answer = calls.length > 0 ? '' : answerText(received, question)
  const full = faults.tokens === undefined ? answer : 'word '.repeat(faults.tokens)
  const { text, stop } = untilStop(full, received.stops)
  const limit = Math.max(1, (received.max_tokens ?? 1000) - reasoning.length)
  const pieces = piecesOf(text)
  const isCut = pieces.length > limit
  const limited = pieces.slice(0, limit)
  const output = reasoning.length + limited.length + calls.reduce((sum, call) => sum + call.pieces.length, 0)
  const natural = calls.length > 0 ? 'tool_calls' : stop === undefined ? 'stop' : 'stop_sequence'
  return {
    reasoning,
    text: limited,
    calls,
    finish: isCut ? 'length' : natural,
    stop: isCut ? undefined : stop,
    usage: { input: INPUT, cached: CACHED, output, reasoning: reasoning.length },
    faults,
  }
}

/** The tools that the question names, once. A forced call is made in any case. */
function requestedTools({ tools, demanded, results }: ReceivedRequest, question: string): Tool[] {
  if (typeof demanded === 'string') return tools.filter(({ name }) => name === demanded)
  if (results.length > 0) return []
  const named = tools.filter(({ name }) => question.includes(name))
  return named.length === 0 && demanded ? tools.slice(0, 1) : named
}

function answerText({ results, schema, system, pictures, turns }: ReceivedRequest, question: string): string {
  if (results.length > 0) {
    return results
      .map(({ name, text, is_error }) => `The tool "${name}" ${is_error ? 'failed' : 'answered'}: ${text}`)
      .join('\n')
  }
  if (schema) return JSON.stringify(sampleOf(schema))
  const seen = pictures.map(({ media_type, data }) => `a picture (${media_type}, ${atob(data).length} bytes)`)
  const systemText = system === '' ? '' : ` The system prompt was: ${system}`
  const mediaText = seen.length === 0 ? '' : ` With the question came ${seen.join(', ')}.`
  return `A simulated vendor received ${turns} messages, the last of them: ${question}${systemText}${mediaText}`
}

/** A value for the schemas of the matrix: the first of an enum, or a plain value. */
function sampleOf(schema: JsonSchema): unknown {
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const properties = schema.properties as Record<string, JsonSchema> | undefined
  if (properties) return Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, sampleOf(one)]))
  const type = String(Array.isArray(schema.type) ? schema.type[0] : schema.type).toLowerCase()
  if (type === 'array') return [sampleOf((schema.items ?? {}) as JsonSchema)]
  return { integer: 12, number: 12.5, boolean: true, object: {} }[type] ?? 'Paris'
}

/** Words, each with the white space after it. */
const piecesOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? []

function untilStop(text: string, stops: string[]): { text: string; stop: string | undefined } {
  const found = stops.filter((one) => text.includes(one)).sort((one, other) => text.indexOf(one) - text.indexOf(other))
  const stop = found[0]
  return { text: stop === undefined ? text : text.slice(0, text.indexOf(stop)), stop }
}

function withoutFaults(text: string): { question: string; faults: Faults } {
  const faults: Record<string, number> = {}
  const lines = text.split('\n').filter((line) => {
    if (!line.startsWith('@sandbox ')) return true
    for (const [, key = '', value] of line.matchAll(/(\w+)=(\d+)/g)) faults[key] = Number(value)
    return false
  })
  return { question: lines.join('\n'), faults }
}
