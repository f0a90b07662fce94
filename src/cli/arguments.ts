/** Parses the flags of a command and reports what is wrong with them. */
import { parseArgs } from 'node:util'
import { meantHint, nearest } from '../kit/nearest.ts'
import type { Terminal } from './terminal.ts'

/** The arguments do not fit the command; the process exits with 2. */
export class UsageError extends Error {
  /** The command whose help explains it. */
  readonly command: string
  constructor(command: string, message: string) {
    super(message)
    this.name = 'UsageError'
    this.command = command
  }
}

/** Flag -> its kind of value; every command also has `help` and `json`. */
export type FlagTable = Record<string, 'text' | 'switch'>

/** The options that name the configuration and the store. */
export const STORE_FLAGS = { config: 'text', 'data-dir': 'text' } as const

export const STORE_FLAGS_HELP = `\
  --data-dir <directory>  data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data); not for PostgreSQL
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)`

export type Arguments = {
  positionals: string[]
  /** The value of a flag; the last one if it was repeated. */
  text(flag: string): string | undefined
  /** All values of a flag, in order. */
  texts(flag: string): string[]
  has(flag: string): boolean
}

type Help = { help: string; terminal: Pick<Terminal, 'out'> }

type CommandParts = Help & {
  /** The command as typed: `token create`. */
  command: string
  args: string[]
  flags: FlagTable
  /** Descriptions of the positional arguments, in order; all are required. */
  positionals?: string[]
  /** More than these are allowed. */
  isOpen?: boolean
}

/** Throws UsageError. Undefined: the help was asked for, and is printed; the other arguments are not checked. */
export function readCommand({ help, terminal, command, args, flags, ...more }: CommandParts): Arguments | undefined {
  const { positionals: expected = [], isOpen = false } = more
  const table: FlagTable = { ...flags, help: 'switch', json: 'switch' }
  const options = Object.fromEntries(
    Object.entries(table).map(([name, kind]) => [
      name,
      {
        type: kind === 'text' ? ('string' as const) : ('boolean' as const),
        ...(name === 'help' ? { short: 'h' } : {}),
      },
    ]),
  )
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true, allowPositionals: true })
  if (tokens.some((token) => token.kind === 'option' && token.name === 'help')) {
    terminal.out(help)
    return undefined
  }
  const texts = new Map<string, string[]>()
  const switches = new Set<string>()
  const positionals: string[] = []
  const fail = (message: string): never => {
    throw new UsageError(command, message)
  }
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const kind = Object.hasOwn(table, token.name) ? table[token.name] : undefined
    if (kind === undefined) fail(unknownFlag(token.rawName, Object.keys(table)))
    else if (kind === 'switch' && token.value !== undefined) fail(`${token.rawName} takes no value`)
    else if (kind === 'switch') switches.add(token.name)
    else if (token.value === undefined || (!token.inlineValue && /^--[a-z]/.test(token.value))) {
      fail(`${token.rawName} needs a value, as in ${token.rawName} <value>`)
    } else texts.set(token.name, [...(texts.get(token.name) ?? []), token.value])
  }
  const surplus = positionals[expected.length]
  if (surplus !== undefined && !isOpen) fail(`does not take ${JSON.stringify(surplus)}`)
  const missing = expected[positionals.length]
  if (missing !== undefined) fail(`needs ${missing}`)
  return {
    positionals,
    text: (flag) => texts.get(flag)?.at(-1),
    texts: (flag) => texts.get(flag) ?? [],
    has: (flag) => switches.has(flag),
  }
}

/** The action of a command that its first argument names; undefined: the help was asked for, and is printed. */
export function readAction<Name extends string>(
  command: string,
  [name, ...args]: string[],
  { names, help, terminal }: Help & { names: readonly Name[] },
): { name: Name; args: string[] } | undefined {
  if (name === '--help' || name === '-h') {
    terminal.out(help)
    return undefined
  }
  if (name === undefined) throw new UsageError(command, `needs a command: ${names.join(', ')}`)
  const known = names.find((one) => one === name)
  if (known === undefined) throw new UsageError(command, unknownCommand(name, names))
  return { name: known, args }
}

/** The options that name the configuration and the store, as the loader takes them. */
export function configFlags(given: Arguments): { config?: string; data_dir?: string } {
  const [config, data_dir] = [given.text('config'), given.text('data-dir')]
  return { ...(config !== undefined && { config }), ...(data_dir !== undefined && { data_dir }) }
}

function unknownFlag(typed: string, known: string[]): string {
  const suggestion = nearest(typed.replace(/^-+/, ''), known)
  const hint = suggestion === undefined ? '' : `; did you mean --${suggestion}?`
  return `has no option ${typed}${hint}`
}

/** The message for an unknown command, with a suggestion. */
export function unknownCommand(typed: string, known: readonly string[]): string {
  return `unknown command ${JSON.stringify(typed)}${meantHint(typed, known)} (commands: ${known.join(', ')})`
}
