/** Two processes record the same call at the same time, on PostgreSQL: each waits for the other. */
import { expect, it } from 'bun:test'
import { Client } from 'pg'
import { entry } from '../../../test/kit/ledger.ts'
import { startPostgres } from '../../../test/kit/postgres.ts'
import { openStore } from '../open-store.ts'

it('charges a call once that ends while another process records it as interrupted', async () => {
  const url = await (await startPostgres()).createDatabase()
  const [one, two] = [await openStore({ url }), await openStore({ url })]
  const held = entry({ entry_id: 'x', amount: 30 })
  await one.ledger.open([{ entry_id: 'x', entry: held }], { process: 'p', until_ms: 1 })
  const [client, watch] = [new Client({ connectionString: url }), new Client({ connectionString: url })]
  for (const each of [client, watch]) await each.connect()
  /** Until so many transactions of this database wait for a lock. */
  const waiting = async (count: number) => {
    const query = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    while ((await watch.query(query)).rows.length < count);
  }
  await client.query('begin')
  await client.query('lock table ledger_entries in share row exclusive mode') // until then nobody adds an entry
  const interrupted = two.ledger.interruptLapsed(1_000_000)
  await waiting(1)
  const ended = one.ledger.append([entry({ entry_id: 'x', amount: 20 })], { process_id: 'p', closes: ['x'] })
  await waiting(2)
  await client.query('commit')
  expect(await interrupted).toBe(1)
  await ended
  const entries = await one.ledger.ofCall('req_a')
  expect(entries.map(({ kind }) => kind).sort()).toEqual(['call', 'interrupted', 'reversal'])
  expect(entries.reduce((sum, { amount }) => sum + (amount ?? 0), 0)).toBe(20)
  for (const open of [client, watch, one, two]) await ('end' in open ? open.end() : open.close())
})
