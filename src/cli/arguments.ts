/** Reads a command's flags, and says plainly what is wrong with them. */
import { parseArgs } from 'node:util'
import { nearest } from '../config/nearest.ts'

/** What was typed is not what the command takes; the process ends with 2. */
export class UsageError extends Error {
  /** The command whose help explains it. */
  readonly command: string
  constructor(command: string, message: string) {
    super(message)
    this.name = 'UsageError'
    this.command = command
  }
}

/** Flag -> what it takes; every command has `help` and `json` besides. */
export type FlagTable = Record<string, 'text' | 'switch'>

export type Arguments = {
  positionals: string[]
  /** The text of a flag; the last one where it was repeated. */
  text(flag: string): string | undefined
  /** Every text of a flag, in the order typed. */
  texts(flag: string): string[]
  has(flag: string): boolean
}

type ArgumentParts = {
  /** As it is typed: `token create`. */
  command: string
  args: string[]
  flags: FlagTable
  /** What may stand beside the flags, in order; all of it is required. */
  positionals?: string[]
}

/** Throws UsageError. With `--help` among them, nothing else is asked of the arguments. */
export function readArguments({ command, args, flags, positionals: wanted = [] }: ArgumentParts): Arguments {
  const table: FlagTable = { ...flags, help: 'switch', json: 'switch' }
  const options = Object.fromEntries(
    Object.entries(table).map(([name, takes]) => [
      name,
      {
        type: takes === 'text' ? ('string' as const) : ('boolean' as const),
        ...(name === 'help' ? { short: 'h' } : {}),
      },
    ]),
  )
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true, allowPositionals: true })
  const texts = new Map<string, string[]>()
  const switches = new Set<string>()
  const positionals: string[] = []
  const fail = (message: string): never => {
    throw new UsageError(command, message)
  }
  const isHelp = tokens.some((token) => token.kind === 'option' && token.name === 'help')
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option' || isHelp) continue
    const takes = Object.hasOwn(table, token.name) ? table[token.name] : undefined
    if (takes === undefined) fail(unknownFlag(token.rawName, Object.keys(table)))
    else if (takes === 'switch' && token.value !== undefined) fail(`${token.rawName} takes no value`)
    else if (takes === 'switch') switches.add(token.name)
    else if (token.value === undefined || (!token.inlineValue && /^--[a-z]/.test(token.value))) {
      fail(`${token.rawName} needs a value, as in ${token.rawName} <value>`)
    } else texts.set(token.name, [...(texts.get(token.name) ?? []), token.value])
  }
  if (!isHelp) {
    const surplus = positionals[wanted.length]
    if (surplus !== undefined) fail(`does not take ${JSON.stringify(surplus)}`)
    const lacking = wanted[positionals.length]
    if (lacking !== undefined) fail(`needs ${lacking}`)
  }
  return {
    positionals,
    text: (flag) => texts.get(flag)?.at(-1),
    texts: (flag) => texts.get(flag) ?? [],
    has: (flag) => (flag === 'help' ? isHelp : switches.has(flag)),
  }
}

function unknownFlag(typed: string, known: string[]): string {
  const meant = nearest(typed.replace(/^-+/, ''), known)
  const hint = meant === undefined ? '' : `; did you mean --${meant}?`
  return `has no option ${typed}${hint}`
}

/** The word that a list of commands lacks, and the one that was probably meant. */
export function unknownCommand(typed: string, known: readonly string[]): string {
  const meant = nearest(typed, known)
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
  return `there is no command ${JSON.stringify(typed)}${hint} (there is: ${known.join(', ')})`
}
