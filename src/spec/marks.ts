/** Marks the schema of a setting, or of a section or list with all in it: whether it is a secret, is shown, takes variables. */

/** A symbol, so that no JSON Schema has it. */
const symbolOf = (name: string) => Symbol.for(`gatehouse.mark.${name}`)
const named = (name: string): { [symbol: symbol]: true } => ({ [symbolOf(name)]: true })

/** Numbers, booleans and enumerated values are always shown. Text without a mark is hidden, and may contain no variable. */
export const mark = {
  /** It may be taken from a file or a variable, and no API shows it. */
  secret: named('secret'),
  /** Free text that is no secret: names that the operator gives, and names at providers. */
  shown: named('shown'),
  /** An address: scheme, host and port are shown; a user, a path and a query may be secrets. */
  origin: named('origin'),
  /** It differs from one installation to the next, so a variable may be filled in, which is not shown. */
  variable: named('variable'),
  /** An address or a host that the gateway sends to. */
  sent_to: named('sent_to'),
  /** It takes effect only at the next start, as its description says. */
  restart: named('restart'),
} as const
export type Mark = keyof typeof mark

const NAMES = new Map((Object.keys(mark) as Mark[]).map((name) => [symbolOf(name), name]))

export const marksOf = (schema: object): Mark[] =>
  Object.getOwnPropertySymbols(schema).flatMap((symbol) => NAMES.get(symbol) ?? [])
