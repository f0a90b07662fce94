/** A terminal for a command that runs in the process of the test: what it prints is collected. */
import type { Terminal } from '../../src/cli/terminal.ts'

export function collectingTerminal({ cwd, environment = {} }: Pick<Terminal, 'cwd'> & Partial<Terminal>) {
  const printed = { out: '', err: '' }
  const terminal: Terminal = {
    out(text) {
      printed.out += text
    },
    err(text) {
      printed.err += text
    },
    environment,
    cwd,
    color: false,
    interactive: false,
  }
  return { terminal, printed }
}
