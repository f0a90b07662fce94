/**
 * Custom tools take free text. In the inner chat type each is a function with one text argument, which every provider
 * supports, with a mark for providers that have custom tools themselves.
 */
import { isRecord, parseJson } from '../../kit/json.ts'
import { CUSTOM, type CustomTool, type HistoryCall, type Tool } from './canonical.ts'

export function customFunction(custom: CustomTool): Tool {
  const { name, description, format } = custom
  // Only the original vendor can enforce a grammar. Other models are asked to follow it.
  const rule =
    format?.type === 'grammar'
      ? `The input must follow this grammar (${format.grammar.syntax}):\n${format.grammar.definition}`
      : undefined
  const fullDescription = [description, rule].filter((text) => text !== undefined && text !== '').join('\n\n')
  return {
    type: 'function',
    function: {
      name,
      ...(fullDescription === '' ? {} : { description: fullDescription }),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', description: 'The whole input, as plain text.' } },
        required: ['input'],
        additionalProperties: false,
      },
    },
    [CUSTOM]: custom,
  }
}

type Described = { [member in keyof Tool['function']]: Tool['function'][member] | undefined } & { name: string }

/** A tool of the inner chat type, without the members that are absent. */
export const functionTool = ({ name, description, parameters, strict }: Described): Tool => ({
  type: 'function',
  function: {
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
    ...(strict === undefined ? {} : { strict }),
  },
})

/** The same of a tool that only its own provider understands completely. */
export const looseTool = (name: unknown, description: unknown, parameters: unknown): Tool =>
  functionTool({
    name: String(name ?? ''),
    description: typeof description === 'string' ? description : undefined,
    parameters: isRecord(parameters) ? parameters : undefined,
    strict: undefined,
  })

/** An earlier call of a custom tool. */
export const customCall = (id: string, { name, input }: { name: string; input: string }): HistoryCall => ({
  id,
  type: 'function',
  function: { name, arguments: argumentsOf(input) },
  [CUSTOM]: true,
})

export const argumentsOf = (input: string): string => JSON.stringify({ input })

/** The text in a call's arguments. If a model did not produce that object, all of its text. */
export function freeText(text: string): string {
  const parsed = parseJson(text)
  if (!isRecord(parsed)) return text
  if (typeof parsed.input === 'string') return parsed.input
  return Object.keys(parsed).length === 0 ? '' : text
}

/** The arguments of a call whose free text arrives in pieces: `START`, then each piece by `argumentsPiece`, then `END`. */
export const ARGUMENTS_START = '{"input":"'
export const ARGUMENTS_END = '"}'
export const argumentsPiece = (input: string): string => JSON.stringify(input).slice(1, -1)

/** Reads the free text out of arguments that arrive in pieces, as far as it is known. */
export type FreeTextReader = { add(text: string): string; end(): string }

/** `{"input": "` with any white space: what follows is the text. */
const OPENING = /^\s*\{\s*"input"\s*:\s*"/
/** `\\u0041`; the other escape sequences have two characters. */
const UNICODE_ESCAPE_LENGTH = 6

export function createFreeTextReader(): FreeTextReader {
  let waiting = ''
  let state: 'before' | 'within' | 'after' | 'unknown' = 'before'
  /** The first half of a character that needs two. */
  let half = ''

  function decoded(raw: string): string {
    const parsed = parseJson(`"${raw.replace(CONTROL, escaped)}"`)
    const text = half + (typeof parsed === 'string' ? parsed : raw)
    half = HIGH_SURROGATE.test(text) ? text.slice(-1) : ''
    return half === '' ? text : text.slice(0, -1)
  }

  /** The text up to its end, or up to an escape sequence that is not complete yet. */
  function readWithin(): string {
    let at = 0
    while (at < waiting.length) {
      const sign = waiting[at]
      if (sign === '"') {
        state = 'after'
        break
      }
      const length = sign !== '\\' ? 1 : waiting[at + 1] === 'u' ? UNICODE_ESCAPE_LENGTH : 2
      if (at + length > waiting.length) break
      at += length
    }
    const raw = waiting.slice(0, at)
    waiting = state === 'after' ? '' : waiting.slice(at)
    return raw === '' ? '' : decoded(raw)
  }

  return {
    add(text) {
      if (state === 'after') return ''
      waiting += text
      if (state === 'before') {
        const [opening] = OPENING.exec(waiting) ?? []
        if (opening === undefined) {
          if (!ARGUMENTS_START.startsWith(waiting.replaceAll(/\s/g, ''))) state = 'unknown'
          return ''
        }
        waiting = waiting.slice(opening.length)
        state = 'within'
      }
      return state === 'within' ? readWithin() : ''
    },
    end() {
      const rest = state === 'before' || state === 'unknown' ? freeText(waiting) : half
      state = 'after'
      return rest
    },
  }
}

/** Some models leave control characters as they are, which JSON does not allow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\u0000-\u001f]/g
const escaped = (sign: string): string => JSON.stringify(sign).slice(1, -1)
const HIGH_SURROGATE = /[\ud800-\udbff]$/
