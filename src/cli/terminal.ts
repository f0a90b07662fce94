/** The process as a command sees it: its output streams, environment and directory. */

export type Terminal = {
  /** For results: standard output. */
  out(text: string): void
  /** For everything else: standard error. */
  err(text: string): void
  environment: Record<string, string | undefined>
  /** The variables without those of the environment file, which can be read again. Absent: there is no such file. */
  process_environment?: Record<string, string | undefined>
  cwd: string
  color: boolean
  /** Whether standard error is a terminal. */
  interactive: boolean
}

export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process
  // A closed pipe (`| head`) is not an error.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    environment: env,
    cwd: process.cwd(),
    color: stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb',
    interactive: stderr.isTTY === true,
  }
}

export const bold = (terminal: Terminal, text: string): string => (terminal.color ? `\x1b[1m${text}\x1b[22m` : text)

export const dim = (terminal: Terminal, text: string): string => (terminal.color ? `\x1b[2m${text}\x1b[22m` : text)

export const json = (value: unknown): string => `${JSON.stringify(value)}\n`

/** A time of the store, in unix seconds. */
export const timeOf = (at: number): string => `${new Date(at * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`
