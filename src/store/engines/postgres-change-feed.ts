/** Changes of tasks, told to the other gateways on the same PostgreSQL (`notify`): haste only, never the truth. */
import { sql } from 'kysely'
import type { Client } from 'pg'
import { TASK_STATUSES, type TaskStatus } from '../../spec/task.ts'

import { createNotifications, type Notifications, type TaskChangeFeed } from '../engine.ts'
import type { Database } from '../tables.ts'

const CHANNEL = 'gatehouse_tasks'
/** Between tries to reach a server that is gone: soon at first, then so that it is not stormed when it is back. */
const FIRST_RETRY_MILLISECONDS = 100
const LONGEST_RETRY_MILLISECONDS = 10_000
/** More than this waits only while the server does not answer; then the oldest is of no use to anybody. */
const MOST_WAITING = 1_000

type ChangeFeed = Notifications & { close(): Promise<void> }

export function createChangeFeed({ db, connect }: { db: Database; connect: () => Client }): ChangeFeed {
  const here = createNotifications()
  const sender = crypto.randomUUID()
  const ear = createEar(connect, (message) => {
    const notifications = readMessage(message, sender)
    if (notifications) here.tell(notifications)
  })
  const send = createSender(db)
  return {
    tell(notifications) {
      here.tell(notifications)
      send(`${sender} ${notifications.status} ${notifications.task_id}`)
    },
    watch(listener) {
      ear.open()
      return here.watch(listener)
    },
    close: ear.close,
  }
}

/** What this process has said itself, and what it cannot read, is nothing to it. */
function readMessage(message: string, sender: string): TaskChangeFeed | undefined {
  const [from, status, task_id] = message.split(' ')
  if (from === sender || !task_id || !TASK_STATUSES.includes(status as TaskStatus)) return undefined
  return { task_id, status: status as TaskStatus }
}

/** One statement at a time; what comes meanwhile goes with the next. What fails is dropped. */
function createSender(db: Database): (message: string) => void {
  let waiting: string[] = []
  let sending = false

  async function run(): Promise<void> {
    sending = true
    while (waiting.length > 0) {
      const messages = waiting
      waiting = []
      // After the commit that it tells of, in a transaction of its own: `notify` makes commits stand in line, and the
      // writes of tasks should not. Nor need this one wait for the disk.
      await sql`
        with quick as (select set_config('synchronous_commit', 'off', true))
        select pg_notify(${CHANNEL}, message) from quick, unnest(${messages}::text[]) as message`
        .execute(db)
        .catch(() => undefined)
    }
    sending = false
  }

  return (message) => {
    waiting.push(message)
    if (waiting.length > MOST_WAITING) waiting.shift()
    if (!sending) void run()
  }
}

/** A connection that listens, and comes back when it was lost. */
function createEar(connect: () => Client, hear: (message: string) => void) {
  let client: Client | undefined
  let retry: ReturnType<typeof setTimeout> | undefined
  let wait = FIRST_RETRY_MILLISECONDS
  let wanted = false

  async function listen(): Promise<void> {
    const mine = connect()
    client = mine
    const lost = () => {
      if (client !== mine) return
      client = undefined
      if (!wanted) return
      retry = setTimeout(listen, wait)
      retry.unref()
      wait = Math.min(wait * 2, LONGEST_RETRY_MILLISECONDS)
    }
    mine.on('error', lost).on('end', lost)
    mine.on('notification', ({ payload }) => hear(payload ?? ''))
    try {
      await mine.connect()
      await mine.query(`listen ${CHANNEL}`)
      wait = FIRST_RETRY_MILLISECONDS
    } catch {
      lost()
      await mine.end().catch(() => undefined)
    }
  }

  return {
    open() {
      if (wanted) return
      wanted = true
      void listen()
    },
    async close(): Promise<void> {
      wanted = false
      clearTimeout(retry)
      await client?.end().catch(() => undefined)
    },
  }
}
