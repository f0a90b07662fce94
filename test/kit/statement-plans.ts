/** The plans of the statements that a store runs, on both engines. */
import { Database } from 'bun:sqlite'
import { spyOn } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { startPostgres } from './postgres.ts'

export type Plan = { statement: string; steps: string[] }
type Planned = {
  /** Before the statements of `work`: through `run` also by SQL. */
  fill?(store: Store, run: (statement: string) => Promise<unknown>): Promise<unknown>
  work(store: Store): Promise<unknown>
  /** Of which statements. */
  of: RegExp
}

/** The steps of the statements that contain a text. */
export const stepsOf = (plans: readonly Plan[], part = ''): string[] =>
  plans.flatMap(({ statement, steps }) => (statement.includes(part) ? steps : []))

export async function plansOfSqlite({ fill, work, of }: Planned): Promise<Plan[]> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-plans-'))
  const path = join(directory, 'gatehouse.db')
  const store = await openStore({ url: `sqlite:${path}` })
  await fill?.(store, async (statement) => {
    using other = new Database(path)
    other.run(statement)
  })
  const prepare = spyOn(Database.prototype, 'prepare')
  try {
    await work(store)
    const statements = prepare.mock.calls.map(([statement]) => statement).filter((one) => of.test(one))
    prepare.mockRestore()
    using file = new Database(path)
    const explain = (statement: string) => file.query<{ detail: string }, []>(`explain query plan ${statement}`).all()
    return statements.map((statement) => ({ statement, steps: explain(statement).map(({ detail }) => detail) }))
  } finally {
    prepare.mockRestore()
    await store.close()
    rmSync(directory, { recursive: true })
  }
}

/** `url`: default a database of its own. `settings`: those under which plans are made, besides those of the server. */
export async function plansOfPostgres({
  fill,
  work,
  of,
  url,
  settings = [],
}: Planned & { url?: string; settings?: readonly string[] }): Promise<Plan[]> {
  const server = await startPostgres()
  const database = url ?? (await server.createDatabase())
  const store = await openStore({ url: database })
  const client = new Client({ connectionString: database })
  await client.connect()
  await fill?.(store, (statement) => client.query(statement))
  const query = spyOn(Client.prototype, 'query')
  try {
    await work(store)
    const calls = query.mock.calls as unknown as [statement: unknown, values?: unknown[]][]
    query.mockRestore()
    for (const setting of settings) await client.query(`set ${setting}`)
    const plans: Plan[] = []
    for (const [statement, values] of calls) {
      if (typeof statement !== 'string' || !of.test(statement)) continue
      const { rows } = await client.query({ text: `explain ${statement}`, values: values ?? [], rowMode: 'array' })
      plans.push({ statement, steps: rows.map(([line]) => String(line)) })
    }
    return plans
  } finally {
    query.mockRestore()
    await store.close()
    await client.end()
    if (url === undefined) await server.dropDatabase(database)
  }
}
