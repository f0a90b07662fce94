/** `gatehouse health`: asks a gateway whether it can serve requests, for health checks where there is no other HTTP client. */
import { readEnvironment } from '../../config/load/environment.ts'
import { isRecord } from '../../kit/json.ts'
import { readCommand } from '../arguments.ts'
import { json, type Terminal } from '../terminal.ts'

const DEFAULT_PORT = 8787
const TIMEOUT_MILLISECONDS = 3_000

const HELP = `Usage: gatehouse health [options]

Asks /readyz of a gateway, at most 3 seconds. Ends with 0 where it can serve requests, else with 1 and the reason.

Options:
  --url <address>    the gateway (default: http://127.0.0.1 with GATEHOUSE_PORT or ${DEFAULT_PORT})
  --json             print the answer as one line of JSON

Examples:
  gatehouse health
  gatehouse health --url http://10.0.0.7:8787
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const given = readCommand({ help: HELP, terminal, command: 'health', args, flags: { url: 'text' } })
  if (!given) return 0
  const { environment, cwd } = terminal
  const { port = DEFAULT_PORT } = readEnvironment({ environment, cwd })
  const address = new URL('/readyz', given.text('url') ?? `http://127.0.0.1:${port}`).href
  const { isReady, answer } = await ask(address)
  if (given.has('json')) terminal.out(json(answer))
  else terminal.out(isReady ? 'ready\n' : `not ready: ${reasonOf(answer)}\n`)
  return isReady ? 0 : 1
}

async function ask(address: string): Promise<{ isReady: boolean; answer: Record<string, unknown> }> {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS), redirect: 'error' })
    const body: unknown = await response.json().catch(() => undefined)
    return { isReady: response.ok, answer: isRecord(body) ? body : { status: response.status } }
  } catch (error) {
    return { isReady: false, answer: { error: `${address}: ${error instanceof Error ? error.message : error}` } }
  }
}

/** The message of an error, or the whole answer where it has another form. */
function reasonOf({ error, ...rest }: Record<string, unknown>): string {
  if (isRecord(error)) return String(error.message)
  return error === undefined ? JSON.stringify(rest) : String(error)
}
