/** Failures specific to PostgreSQL: a server that rejects, goes away, or serves several gateways. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { sql } from 'kysely'
import { Client } from 'pg'
import { storedToken } from '../../test/kit/accounts.ts'
import { startPostgres } from '../../test/kit/postgres.ts'
import { blankTask } from '../families/tasks/lifecycle.ts'
import type { Task } from '../spec/task.ts'
import { openPostgres } from './engines/postgres.ts'
import { openStore } from './open-store.ts'
import { type Store, StoreError } from './store.ts'

const databases: string[] = []
const stores: Store[] = []

async function freshDatabase(): Promise<string> {
  const url = await (await startPostgres()).createDatabase()
  databases.push(url)
  return url
}

async function open(url: string): Promise<Store> {
  const store = await openStore({ url })
  stores.push(store)
  return store
}

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  for (const url of databases.splice(0)) await (await startPostgres()).dropDatabase(url)
})

/** The message of the error; neither it nor its causes may contain the password. */
async function refusal(url: string): Promise<string> {
  const error = await openStore({ url }).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StoreError)) throw new Error(`expected a StoreError, got ${error}`)
  expect(Bun.inspect(error)).not.toContain('hunter2')
  return error.message
}

function changed(url: string, change: (url: URL) => void): string {
  const other = new URL(url)
  change(other)
  return other.href
}

/** Runs statements as the operator, bypassing the store. */
async function asOperator<T>(url: string, statement: string): Promise<T[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows as T[]
  } finally {
    await client.end()
  }
}

const dropConnections = (url: string) =>
  asOperator(
    url,
    'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()',
  )

const task = (name: string): Task =>
  blankTask({
    task_id: `task_${name}`,
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'm',
    submit_time: 1,
    request: {},
    base_url: '',
    deadline_at: 9,
    due_ms: 1,
  })

const token = (name: string) => storedToken({ token_id: `tok_${name}`, name, hash: name })

describe('an error about an unusable server names the server and not the password', () => {
  test('when the password is wrong', async () => {
    const url = changed(await freshDatabase(), (to) => {
      to.password = 'hunter2'
    })
    const { host, pathname } = new URL(url)
    expect(await refusal(url)).toBe(
      `Cannot use the PostgreSQL database "${pathname.slice(1)}" at ${host} as the user "gatehouse": password ` +
        'authentication failed for user "gatehouse". Check the user and the password in the address.',
    )
  })

  test('when the database does not exist', async () => {
    const url = changed(await freshDatabase(), (to) => {
      to.pathname = '/nowhere'
    })
    expect(await refusal(url)).toEndWith(
      'database "nowhere" does not exist. Create the database first (createdb), or use another one.',
    )
  })

  test('when the user may not create tables', async () => {
    const url = await freshDatabase()
    const user = `poor_${process.pid}`
    await asOperator(url, `create role ${user} login password 'hunter2'`)
    const as_user = changed(url, (to) => {
      to.username = user
      to.password = 'hunter2'
    })
    expect(await refusal(as_user)).toContain(
      'permission denied for schema public. The user must be allowed to create tables',
    )
    await asOperator(url, `drop role ${user}`)
  })

  test('when nothing listens at the address', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    await new Promise((resolve) => server.close(resolve))
    expect(await refusal(`postgres://user:hunter2@127.0.0.1:${port}/db`)).toBe(
      `Cannot use the PostgreSQL database "db" at 127.0.0.1:${port} as the user "user": connect ECONNREFUSED ` +
        `127.0.0.1:${port}. Is the server running, and does it listen there?`,
    )
  })

  test('when the address cannot be parsed', async () => {
    expect(await refusal('postgres://user:hunter2/@#@host:5432/db')).toStartWith("The store's address cannot be read.")
    expect(await refusal('postgres:hunter2')).toEndWith('it is "postgres:...".')
  })
})

describe('a lost connection', () => {
  test('fails running calls, does not end the process, and later calls succeed', async () => {
    const url = await freshDatabase()
    const store = await open(url)
    const operator = new Client({ connectionString: url })
    await operator.connect()
    await operator.query('begin; lock table tasks in access exclusive mode')
    const writes = Array.from({ length: 30 }, (_, index) => store.tasks.add({ task: task(`${index}`) }))
    const settled = Promise.allSettled(writes)
    const waiting = "from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    // On another connection: within a transaction the server repeats its first snapshot.
    while ((await asOperator(url, `select pid ${waiting}`)).length < 10);
    await asOperator(url, `select pg_terminate_backend(pid) ${waiting}`)
    await operator.query('commit')
    await operator.end()
    const answered = (await settled).flatMap(({ status }, index) => (status === 'fulfilled' ? [`task_${index}`] : []))
    expect(answered.length).toBeLessThanOrEqual(20)
    const stored = (await store.tasks.list({ limit: 500 })).map(({ task_id }) => task_id)
    expect(stored.toSorted()).toEqual(answered.toSorted())
    await store.ping()
  })

  test('is that of a transaction which its gateway leaves idle, as a frozen one does: others get its rows', async () => {
    const url = await freshDatabase()
    const engine = await openPostgres(url)
    const { rows } = await sql<{ time: string }>`
      select current_setting('idle_in_transaction_session_timeout') as time`.execute(engine.db)
    expect(rows).toEqual([{ time: '15s' }]) // longer than any statement, shorter than a lease
    const lock = 'lock table tasks in access exclusive mode nowait'
    const error = await engine
      .write(async (writes) => {
        await sql`set local idle_in_transaction_session_timeout = 50`.execute(writes) // as if 15 s had passed then
        await sql.raw(lock).execute(writes)
        const isThere = `select pid from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`
        while ((await asOperator(url, isThere)).length > 0) await Bun.sleep(20)
        await sql`select 1`.execute(writes)
      })
      .catch((thrown: unknown) => thrown)
    expect(engine.isUnavailable(error)).toBe(true)
    await asOperator(url, `begin; ${lock}; commit`)
    await engine.write((writes) => sql.raw(lock).execute(writes))
    await engine.close()
  })
})

describe('several gateways', () => {
  test('open an empty database at the same time, and one adds the first token', async () => {
    const url = await freshDatabase()
    const script = `
      import { openStore } from ${JSON.stringify(join(import.meta.dir, 'open-store.ts'))}
      const store = await openStore({ url: process.env.URL_OF_STORE })
      const token = { ...${JSON.stringify(token('x'))}, token_id: 'tok_' + process.pid, hash: 'h' + process.pid }
      console.log(await store.tokens.addFirst(token))
      await store.close()`
    const children = Array.from({ length: 4 }, () =>
      Bun.spawn([process.execPath, '-e', script], {
        env: { ...process.env, URL_OF_STORE: url },
        stdout: 'pipe',
        stderr: 'pipe',
      }),
    )
    const answers = await Promise.all(
      children.map(async (child) => ({
        out: (await new Response(child.stdout).text()).trim(),
        error: await new Response(child.stderr).text(),
        exit: await child.exited,
      })),
    )
    expect(answers.map(({ error, exit }) => ({ error, exit }))).toEqual(answers.map(() => ({ error: '', exit: 0 })))
    expect(answers.map(({ out }) => out).sort()).toEqual(['false', 'false', 'false', 'true'])
  }, 120_000)

  test("are notified of each other's changes once each, also after a lost connection", async () => {
    const url = await freshDatabase()
    const [here, there] = [await open(url), await open(url)]
    const heard: string[] = []
    let hear = () => {}
    const stop = there.tasks.watch(({ task_id, status }) => {
      heard.push(`${task_id} ${status}`)
      hear()
    })
    let count = 0
    /** Adds tasks until one is announced, since the listener connects in the background. */
    const untilHeard = async () => {
      const before = heard.length
      while (heard.length === before) {
        const next = new Promise<void>((resolve) => {
          hear = resolve
        })
        await here.tasks.add({ task: task(`${count++}`) }).catch(() => undefined) // over a dropped connection
        await Promise.race([next, Bun.sleep(50)])
      }
    }
    await untilHeard()
    expect(heard.at(-1)).toBe(`task_${count - 1} NOT_START`)
    await dropConnections(url)
    await here.ping().catch(() => undefined)
    await untilHeard()
    expect(heard.at(-1)).toBe(`task_${count - 1} NOT_START`)
    expect(new Set(heard).size).toBe(heard.length)
    stop()
  }, 120_000)

  test('are notified of their own changes once', async () => {
    const store = await open(await freshDatabase())
    const heard: string[] = []
    store.tasks.watch(({ task_id }) => heard.push(task_id))
    for (let index = 0; index < 10; index++) await store.tasks.add({ task: task(`${index}`) })
    await store.close()
    expect(heard).toHaveLength(10)
  })
})
