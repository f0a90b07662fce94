/**
 * Three gateways, each on a machine of its own, share PostgreSQL and Valkey behind nginx. While clients call, one is killed, one
 * frozen and one cut off from the network, or from one of both: no call is lost or counted twice, and limits and budgets hold.
 */
import { afterEach, describe, expect, it } from 'bun:test'
import { Client } from 'pg'
import {
  BUDGET,
  CELL_ADMIN,
  CELL_TOKENS,
  type CellGateway,
  type CellToken,
  canStartCell,
  LIMIT,
  startCell,
} from './kit/cell.ts'

const CLIENTS = 6
/** Refusals after which a client calls with the token that nothing limits. */
const REFUSALS = 30
/** Answered calls before each fault, during it, and after it is repaired. */
const CALLS = 150

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const isReady = ({ url }: CellGateway): Promise<boolean> =>
  fetch(`${url}/readyz`, { keepalive: false, signal: AbortSignal.timeout(3_000) }).then(
    ({ status }) => status === 200,
    () => false,
  )

async function readyAgain(gateway: CellGateway): Promise<void> {
  while (!(await isReady(gateway)));
}

/** Clients call through nginx until they are stopped; a call that got no whole answer counts as unanswered. */
function startClients(url: string) {
  const sent: { id: string; token: CellToken }[] = []
  const statuses = new Map<string, number>()
  let answered = 0
  let isOver = false
  const waiting = new Set<{ count: number; resolve(): void }>()
  async function call(token: CellToken): Promise<number | undefined> {
    const id = `${token}-${sent.length}`
    sent.push({ id, token })
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${CELL_TOKENS[token]}`,
        'content-type': 'application/json',
        'x-gatehouse-user': id,
      },
      body: JSON.stringify({ model: 'v/m', max_tokens: 1, messages: [{ role: 'user', content: id }] }),
    }).catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (response === undefined || text === undefined) return undefined
    statuses.set(id, response.status)
    if (response.status === 200) {
      answered++
      for (const wait of waiting) if (answered >= wait.count) wait.resolve()
    }
    return response.status
  }
  const tokens = Object.keys(CELL_TOKENS) as CellToken[]
  const clients = Array.from({ length: CLIENTS }, async (_, index) => {
    const token = tokens[index % tokens.length] as CellToken
    for (let refused = 0; !isOver; ) {
      const status = await call(refused < REFUSALS ? token : 'plain')
      if (status === 429) refused++
    }
  })
  return {
    sent,
    statuses,
    /** Resolves after so many further answers. */
    further(count: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.add({ count: answered + count, resolve })
      return promise
    },
    async stop() {
      isOver = true
      await Promise.all(clients)
    },
  }
}

type Entry = { end_user: string; requests: string; kinds: string[] }

/** By call: how many requests its entries add up to, and their kinds; a call interrupted by mistake is taken back. */
async function entriesOf(database: string): Promise<Entry[]> {
  const client = new Client({ connectionString: database })
  await client.connect()
  try {
    const { rows } = await client.query<Entry>(
      'select end_user, sum(requests) as requests, array_agg(kind order by kind) as kinds from ledger_entries group by end_user',
    )
    return rows
  } finally {
    await client.end()
  }
}

async function isOpen(database: string): Promise<boolean> {
  const client = new Client({ connectionString: database })
  await client.connect()
  try {
    const { rows } = await client.query<{ count: string }>('select count(*) as count from open_calls')
    return rows[0]?.count !== '0'
  } finally {
    await client.end()
  }
}

const repeated = (ids: string[]) => ids.filter((id, index) => ids.indexOf(id) !== index)

type Cell = Awaited<ReturnType<typeof startCell>>
type Clients = ReturnType<typeof startClients>

/** Each call that was sent to the provider or answered is in the ledger once, and limits and budgets have held. */
async function expectAll({ provider, gateways, database }: Cell, clients: Clients, limit = LIMIT) {
  await clients.stop()
  for (const gateway of gateways) await readyAgain(gateway)
  while (await isOpen(database));
  const entries = await entriesOf(database)
  const called = provider.calls.map(({ id }) => id)
  const ids = new Set(entries.map(({ end_user }) => end_user))
  const answered = [...clients.statuses].filter(([, status]) => status === 200).map(([id]) => id)
  expect(repeated(called)).toEqual([])
  expect(entries.filter(({ requests }) => requests !== '1')).toEqual([])
  expect({
    'answered, not recorded': answered.filter((id) => !ids.has(id)),
    'called, not recorded': called.filter((id) => !ids.has(id)),
  }).toEqual({ 'answered, not recorded': [], 'called, not recorded': [] })

  const of = (token: CellToken) => provider.calls.filter((call) => call.token === token).length
  expect(of('limited')).toBeLessThanOrEqual(limit)
  expect(of('limited')).toBeGreaterThan(LIMIT / 2)
  expect(of('budgeted')).toBeLessThanOrEqual(BUDGET)
  expect(of('budgeted')).toBeGreaterThan(BUDGET / 2)
}

describe.skipIf(!canStartCell)('three gateways on machines of their own', () => {
  it('lose no call and count none twice while one is killed, one frozen and one cut off', async () => {
    const cell = await startCell(3, closing)
    const [first, second, third] = cell.gateways as [CellGateway, CellGateway, CellGateway]
    const clients = startClients(cell.proxy.url)
    await clients.further(CALLS)

    first.process.child.kill('SIGKILL')
    await first.process.child.exited
    await clients.further(CALLS)
    await first.restart()
    await clients.further(CALLS)

    second.process.child.kill('SIGSTOP')
    await clients.further(CALLS)
    second.process.child.kill('SIGCONT')
    await readyAgain(second)
    await clients.further(CALLS)

    third.machine.cut()
    await clients.further(CALLS)
    third.machine.mend()
    await readyAgain(third)
    await clients.further(CALLS)

    await expectAll(cell, clients)
  }, 240_000)

  it('lose no call and count none twice while links to Valkey and to PostgreSQL are cut', async () => {
    const cell = await startCell(3, closing, 1_000)
    const [first, second, third] = cell.gateways as [CellGateway, CellGateway, CellGateway]
    const clients = startClients(cell.proxy.url)
    await clients.further(CALLS)
    const cut = [
      [first.links.valkey],
      [first.links.valkey, second.links.valkey, third.links.valkey],
      [second.links.postgres],
      [third.links.postgres, third.links.valkey],
    ]
    for (const links of cut) {
      for (const link of links) link.cut()
      await clients.further(CALLS)
      for (const link of links) link.mend()
      for (const gateway of cell.gateways) await readyAgain(gateway)
      await clients.further(CALLS)
    }
    // More by what they admit until all know that one has lost Valkey, a tenth of a second.
    await expectAll(cell, clients, LIMIT * 1.2)
  }, 240_000)

  it('refuse a revoked token on every machine, and on one that is cut off once it is back', async () => {
    const { gateways } = await startCell(3, closing)
    const admin = (gateway: CellGateway, method: string, path: string, body?: object) =>
      fetch(`${gateway.url}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${CELL_ADMIN}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    const [first, second, third] = gateways as [CellGateway, CellGateway, CellGateway]
    const created = (await (await admin(first, 'POST', '/tokens', { name: 'shared' })).json()) as {
      token_id: string
      secret: string
    }
    const statusAt = async ({ url }: CellGateway) =>
      (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${created.secret}` } })).status
    for (const gateway of gateways) expect(await statusAt(gateway)).toBe(200)
    // What a gateway knows of tokens is valid for it until it reaches the database again.
    third.links.postgres.cut()
    expect((await admin(first, 'DELETE', `/tokens/${created.token_id}`)).status).toBe(200)
    for (const gateway of [first, second]) while ((await statusAt(gateway)) !== 401);
    while (await isReady(third));
    expect(await statusAt(third)).toBe(200)
    third.links.postgres.mend()
    while ((await statusAt(third)) !== 401);
  }, 120_000)
})
