/** `gatehouse health`: asks a gateway whether it can serve requests, for health checks where there is no other HTTP client. */
import { get } from 'node:http'
import { get as getByTls } from 'node:https'
import { text } from 'node:stream/consumers'
import { readEnvironment } from '../../config/load/environment.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import { type Arguments, UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const DEFAULT_PORT = 8787
const TIMEOUT_MILLISECONDS = 3_000

const HELP = `Usage: gatehouse health [options]

Asks /readyz of a gateway, at most 3 seconds and without a proxy. Ends with 0 where it can serve requests, else with 1
and the reason.

Options:
  --url <address>    the gateway (default: http://127.0.0.1 with GATEHOUSE_PORT or ${DEFAULT_PORT})
  --json             print the answer as one line of JSON

Examples:
  gatehouse health
  gatehouse health --url http://10.0.0.7:8787
`

export const run = plainCommand('health', HELP, { flags: { url: 'text' }, run: report })

async function report(given: Arguments, { environment, cwd }: Terminal) {
  const { port = DEFAULT_PORT } = readEnvironment({ environment, cwd })
  const address = addressOf(given.text('url') ?? `http://127.0.0.1:${port}`)
  const { isReady, answer } = await ask(address)
  const text = () => (isReady ? 'ready\n' : `not ready: ${reasonOf(answer)}\n`)
  return { data: answer, text, code: isReady ? 0 : 1 }
}

function addressOf(text: string): URL {
  const address = URL.canParse(text) ? new URL(text) : undefined
  if (address && /^https?:$/.test(address.protocol)) return new URL('/readyz', address)
  throw new UsageError('health', '--url must be an http or https address, such as http://10.0.0.7:8787')
}

async function ask(address: URL): Promise<{ isReady: boolean; answer: Record<string, unknown> }> {
  try {
    const { status, body } = await answerOf(address)
    return { isReady: status >= 200 && status < 300, answer: isRecord(body) ? body : { status } }
  } catch (error) {
    const shown = `${address.origin}${address.pathname}`
    return { isReady: false, answer: { error: `${shown}: ${error instanceof Error ? error.message : error}` } }
  }
}

/** Without `fetch`, which would ask for the gateway of this machine at the proxy that HTTP_PROXY names for providers. */
async function answerOf(address: URL): Promise<{ status: number; body: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: unknown }>()
  const send = address.protocol === 'https:' ? getByTls : get
  const options = { agent: false, signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) } as const
  const request = send(address, options, (response) => {
    const { statusCode: status = 0 } = response
    text(response).then((read) => resolve({ status, body: parseJson(read) }), reject)
  })
  request.on('error', reject)
  return promise
}

/** The message of an error, or the whole answer where it has another form. */
function reasonOf({ error, ...rest }: Record<string, unknown>): string {
  if (isRecord(error)) return String(error.message)
  return error === undefined ? JSON.stringify(rest) : String(error)
}
