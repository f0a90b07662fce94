/** One cell: gateways on machines of their own that share PostgreSQL and Valkey, with nginx in front and a provider behind. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createNetwork, hasMachines, type Machine, type Network } from './machines.ts'
import { NGINX, startNginx } from './nginx.ts'
import { startPostgres } from './postgres.ts'
import type { Relay } from './relay.ts'
import { type ServeProcess, serveDirectory, startServe, writeConfig } from './serve-process.ts'
import { hasValkey, startValkey } from './valkey.ts'
import { completion } from './vendor.ts'

const COMMAND = join(import.meta.dir, '../../bin/gatehouse')
const PORT = 8787
export const canStartCell = hasMachines && hasValkey && NGINX !== null

/** Calls an hour of `limited`, and the budget of `budgeted`: each call costs 1. */
export const LIMIT = 120
export const BUDGET = 100
export const CELL_TOKENS = {
  plain: 'sk-cell-plain-000000000000000000000000',
  limited: 'sk-cell-limited-0000000000000000000000',
  budgeted: 'sk-cell-budgeted-000000000000000000000',
}
export type CellToken = keyof typeof CELL_TOKENS
export const CELL_ADMIN = 'adm-cell-0000000000000000000000000000'

/** What is to be called, in reverse order, at the end. */
type Closing = (() => unknown)[]

/** A provider that answers every call, and remembers of whom. */
function startProvider(hostname: string, closing: Closing) {
  const calls: { id: string; token: CellToken }[] = []
  const server = Bun.serve({
    hostname,
    port: 0,
    async fetch(request) {
      const { messages } = (await request.json()) as { messages: { content: string }[] }
      const id = messages[0]?.content ?? ''
      calls.push({ id, token: id.split('-')[0] as CellToken })
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      return Response.json(completion('hi', { usage }))
    },
  })
  closing.push(() => server.stop(true))
  return { url: `http://${hostname}:${server.port}/v1`, calls }
}

type Links = { postgres: Relay; valkey: Relay }
type GatewayParts = { machine: Machine; config: object; database: string; links: Links; closing: Closing }

/** `links`: each of them can be cut while the machine itself stays connected. */
export type CellGateway = {
  machine: Machine
  links: Links
  url: string
  process: ServeProcess
  restart(): Promise<void>
}

async function startGateway({ machine, config, database, links, closing }: GatewayParts): Promise<CellGateway> {
  const { directory, remove } = serveDirectory()
  closing.push(remove)
  mkdirSync(join(directory, 'data'))
  writeConfig(directory, { server: { host: machine.address, drain_seconds: 0, max_delay_ms: 0 }, ...config })
  const environment = { GATEHOUSE_LOG: 'error', GATEHOUSE_DATABASE_URL: database }
  const start = async () => {
    const process = await startServe({ directory, port: PORT, environment, command: machine.command(COMMAND) })
    closing.push(async () => {
      process.child.kill('SIGKILL')
      await process.child.exited
    })
    return process
  }
  const gateway: CellGateway = {
    machine,
    links,
    url: `http://${machine.address}:${PORT}`,
    process: await start(),
    async restart() {
      gateway.process = await start()
    },
  }
  return gateway
}

/** Starts all of it; `closing` gets what ends it. `timeout_ms`: of commands to Valkey. */
export async function startCell(machines: number, closing: Closing, timeout_ms = 10_000) {
  const network: Network = createNetwork(machines)
  closing.push(() => network.remove())
  const provider = startProvider(network.address, closing)
  const postgres = await startPostgres()
  const database = await postgres.createDatabase()
  closing.push(() => postgres.dropDatabase(database))
  const valkey = await startValkey()
  closing.push(valkey.stop)
  const through = (relay: Relay, address: string) =>
    Object.assign(new URL(address), { host: `${network.address}:${relay.port}` }).href
  const config = {
    sandbox: false,
    ledger: { durable: true },
    limits: { store: 'valkey' },
    providers: { v: { base_url: provider.url, key: 'key' } },
    models: { 'v/m': { prices: { input: 0, output: 1_000_000 } } },
    api_tokens: {
      plain: { secret: CELL_TOKENS.plain },
      limited: { secret: CELL_TOKENS.limited, rate_limits: { requests_per_hour: LIMIT } },
      budgeted: { secret: CELL_TOKENS.budgeted, budgets: [{ amount: BUDGET, window: 'total' }] },
    },
    admin_tokens: { root: { secret: CELL_ADMIN, role: 'owner' } },
  }
  const gateways: CellGateway[] = []
  for (const machine of network.machines) {
    const links = { postgres: network.relay(Number(new URL(database).port)), valkey: network.relay(valkey.port) }
    gateways.push(
      await startGateway({
        machine,
        config: { ...config, valkey: { url: through(links.valkey, valkey.url), timeout_ms } },
        database: through(links.postgres, database),
        links,
        closing,
      }),
    )
  }
  const { port } = network.relay(0) // a free one: nobody connects to it
  const proxy = await startNginx(
    `upstream gatehouse { ${gateways.map(({ machine }) => `server ${machine.address}:${PORT} fail_timeout=1s;`).join(' ')} }
     server {
       listen 127.0.0.1:${port};
       location / { proxy_pass http://gatehouse; proxy_connect_timeout 1s; proxy_read_timeout 3s; }
     }`,
    port,
  )
  closing.push(proxy.stop)
  return { provider, gateways, proxy, database }
}
