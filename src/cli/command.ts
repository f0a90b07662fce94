/** Commands as data: what they take, and what they do. */
import { type Arguments, type FlagTable, readAction, readCommand } from './arguments.ts'
import { type Outcome, print } from './outcome.ts'
import type { Terminal } from './terminal.ts'

type Shape = {
  flags?: FlagTable
  positionals?: string[]
  /** More positionals than these are allowed. */
  isOpen?: boolean
  /** The exit code where it prints by itself. */
  run(given: Arguments, terminal: Terminal): Outcome | number | Promise<Outcome | number>
}
type Run = (args: string[], terminal: Terminal) => Promise<number>

/** A command without actions. */
export const plainCommand =
  (command: string, help: string, { run, flags = {}, ...more }: Shape): Run =>
  async (args, terminal) => {
    const given = readCommand({ help, terminal, command, args, flags, ...more })
    return given ? print(await run(given, terminal), { given, terminal }) : 0
  }

/** A command that its first argument divides into actions. */
export const actionsOf =
  (command: string, help: string, actions: Record<string, Shape>): Run =>
  async (args, terminal) => {
    const read = readAction(command, args, { names: Object.keys(actions), help, terminal })
    const action = read && actions[read.name]
    return action ? plainCommand(`${command} ${read.name}`, help, action)(read.args, terminal) : 0
  }
