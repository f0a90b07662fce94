/**
 * `npm run bench:cell`: what a call costs a gateway that is alone, and one of three that share PostgreSQL and Valkey, each
 * on a machine (network namespace) of its own at the same rate; and how soon the others refuse a revoked token.
 */
import { readFileSync } from 'node:fs'
import { CELL_ADMIN, CELL_TOKENS, type CellGateway, canStartCell, startCell } from '../test/kit/cell.ts'

const RATE = Number(process.env.GATEHOUSE_BENCH_RATE ?? 150)
const SECONDS = Number(process.env.GATEHOUSE_BENCH_SECONDS ?? 15)
const WARM_SECONDS = 5
/** For each gateway. */
const CLIENTS = 8
/** Of `/proc/PID/stat`, in hundredths of a second. */
const MILLISECONDS_A_TICK = 10
const REVOCATIONS = 10

const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** Processor time of a gateway in milliseconds. */
function processorTime(gateway: CellGateway): number {
  const fields = readFileSync(`/proc/${gateway.process.child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * MILLISECONDS_A_TICK
}

async function call(url: string, id: string): Promise<boolean> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${CELL_TOKENS.plain}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'v/m', max_tokens: 1, messages: [{ role: 'user', content: id }] }),
  })
  await response.arrayBuffer()
  return response.status === 200
}

/** Calls all gateways together through nginx at `RATE` each, or as fast as so many clients can. */
async function load(url: string, gateways: number, seconds: number): Promise<{ answered: number; failed: number }> {
  let [sent, answered, failed] = [0, 0, 0]
  const started = performance.now()
  const total = RATE * gateways * seconds
  async function client(): Promise<void> {
    while (sent < total) {
      const index = sent++
      const early = (index / (RATE * gateways)) * 1000 - (performance.now() - started)
      if (early > 0) await Bun.sleep(early)
      if (await call(url, `plain-${index}`).catch(() => false)) answered++
      else failed++
    }
  }
  await Promise.all(Array.from({ length: CLIENTS * gateways }, client))
  return { answered, failed }
}

async function measure(count: number): Promise<number> {
  const closing: (() => unknown)[] = []
  try {
    const { gateways, proxy } = await startCell(count, closing)
    await load(proxy.url, count, WARM_SECONDS)
    const before = gateways.map(processorTime)
    const { answered, failed } = await load(proxy.url, count, SECONDS)
    const spent = gateways.reduce((sum, gateway, index) => sum + processorTime(gateway) - (before[index] ?? 0), 0)
    const each = (spent * 1000) / answered
    print(
      `${count} gateway${count > 1 ? 's' : ''}: ${each.toFixed(0)} µs a call at ${RATE} calls a second each, ${answered} answered, ${failed} failed`,
    )
    if (count > 1) await revoke(gateways)
    return each
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function revoke(gateways: CellGateway[]): Promise<void> {
  const [first, ...others] = gateways as [CellGateway, ...CellGateway[]]
  const admin = { authorization: `Bearer ${CELL_ADMIN}`, 'content-type': 'application/json' }
  const latest: number[] = []
  for (let turn = 0; turn < REVOCATIONS; turn++) {
    const created = await fetch(`${first.url}/admin/v1/tokens`, {
      method: 'POST',
      headers: admin,
      body: JSON.stringify({ name: `shared-${turn}` }),
    })
    const { token_id, secret } = (await created.json()) as { token_id: string; secret: string }
    const statusAt = async ({ url }: CellGateway) =>
      (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })).status
    for (const gateway of gateways) await statusAt(gateway)
    await fetch(`${first.url}/admin/v1/tokens/${token_id}`, { method: 'DELETE', headers: admin })
    const revoked = performance.now()
    await Promise.all(
      others.map(async (gateway) => {
        while ((await statusAt(gateway)) !== 401) await Bun.sleep(5)
      }),
    )
    latest.push(performance.now() - revoked)
  }
  latest.sort((a, b) => a - b)
  print(
    `a revoked token is refused by all after ${latest[REVOCATIONS >> 1]?.toFixed(0)} ms (median of ${REVOCATIONS}), at most ${latest.at(-1)?.toFixed(0)} ms`,
  )
}

if (!canStartCell) {
  print('It needs root, Linux, iproute2, nginx, and valkey-server or redis-server.')
  process.exit(1)
}
const [alone, shared] = [await measure(1), await measure(3)]
print(`a call costs one of three ${(shared / alone).toFixed(2)} times what it costs one alone`)
process.exit(0)
