/** Prints what an action of a command has done, as JSON or as text. */
import type { Arguments } from './arguments.ts'
import { json, type Terminal } from './terminal.ts'

/** What an action prints: `data` with --json, else `text`. */
export type Outcome = {
  data: object
  text(): string | Promise<string>
  /** In place of `text` with --quiet, where the command has it. */
  quiet?: string
  /** The exit code, where it is not 0. */
  code?: number
}

/** The exit code of an outcome that is printed. */
export async function print(
  outcome: Outcome | number,
  { given, terminal }: { given: Arguments; terminal: Terminal },
): Promise<number> {
  if (typeof outcome === 'number') return outcome
  const { data, text, quiet, code = 0 } = outcome
  if (given.has('json')) terminal.out(json(data))
  else terminal.out(quiet !== undefined && given.has('quiet') ? quiet : await text())
  return code
}

/** Only the secret goes to standard output, so that a script can read it; the explanation goes to standard error. */
export const secretOutcome = (
  data: object,
  secret: string,
  { note, terminal }: { note: string; terminal: Terminal },
) => ({
  data,
  text() {
    terminal.err(note)
    return `${secret}\n`
  },
  quiet: `${secret}\n`,
})
