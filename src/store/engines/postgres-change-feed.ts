/** Notifies the other gateways on the same PostgreSQL of changed tasks (`notify`). Only for speed: polling finds them too. */
import { sql } from 'kysely'
import type { Client } from 'pg'
import { TASK_STATUSES, type TaskStatus } from '../../spec/task.ts'

import { createNotifications, type Notifications, type TaskNotification } from '../engine.ts'
import type { Database } from '../tables.ts'

const CHANNEL = 'gatehouse_tasks'
/** Pauses between attempts to reconnect: short at first, then longer, so that a server that returns is not flooded. */
const FIRST_RETRY_MILLISECONDS = 100
const MAX_RETRY_MILLISECONDS = 10_000
/** A connection that was cut off is silent; it is lost if a statement is not answered when the next one is due. */
const PULSE_MILLISECONDS = 10_000
/** More messages than this wait only while the server does not respond; then the oldest are dropped. */
const MAX_WAITING = 1_000

type ChangeFeed = Notifications & { close(): Promise<void> }
type ChangeFeedParts = { db: Database; connect: () => Client; pulse_ms?: number }

export function createChangeFeed({ db, connect, pulse_ms = PULSE_MILLISECONDS }: ChangeFeedParts): ChangeFeed {
  const local = createNotifications()
  const sender = crypto.randomUUID()
  const subscription = createListener({ connect, pulse_ms }, (message) => {
    const notification = readMessage(message, sender)
    if (notification) local.notify(notification)
  })
  const send = createSender(db)
  return {
    notify(notification) {
      local.notify(notification)
      send(`${sender} ${notification.status} ${notification.task_id}`)
    },
    watch(listener) {
      subscription.open()
      return local.watch(listener)
    },
    close: subscription.close,
  }
}

/** Undefined for messages that this process has sent itself, and for those that it cannot read. */
function readMessage(message: string, sender: string): TaskNotification | undefined {
  const [from, status, task_id] = message.split(' ')
  if (from === sender || !task_id || !TASK_STATUSES.includes(status as TaskStatus)) return undefined
  return { task_id, status: status as TaskStatus }
}

/** One statement at a time; messages that arrive meanwhile go with the next one. Failed messages are dropped. */
function createSender(db: Database): (message: string) => void {
  let waiting: string[] = []
  let sending = false

  async function run(): Promise<void> {
    sending = true
    while (waiting.length > 0) {
      const messages = waiting
      waiting = []
      // After the commit that it reports, in a transaction of its own: `notify` serializes commits, and the writes of
      // tasks should not wait for each other. Nor does this transaction need to wait for the disk.
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
    if (waiting.length > MAX_WAITING) waiting.shift()
    if (!sending) void run()
  }
}

/** A connection that listens, and reconnects when it is lost. */
function createListener(
  { connect, pulse_ms }: Required<Omit<ChangeFeedParts, 'db'>>,
  onMessage: (message: string) => void,
) {
  let client: Client | undefined
  let retry: ReturnType<typeof setTimeout> | undefined
  let wait = FIRST_RETRY_MILLISECONDS
  let is_open = false

  async function listen(): Promise<void> {
    const current = connect()
    client = current
    const lost = () => {
      if (client !== current) return
      client = undefined
      if (!is_open) return
      retry = setTimeout(listen, wait)
      retry.unref()
      wait = Math.min(wait * 2, MAX_RETRY_MILLISECONDS)
    }
    current.on('error', lost).on('end', lost)
    current.on('notification', ({ payload }) => onMessage(payload ?? ''))
    let isAnswered = false
    const ask = async (statement: string) => {
      isAnswered = false
      await current.query(statement)
      isAnswered = true
    }
    try {
      await current.connect()
      const pulse = setInterval(() => {
        if (client === current && isAnswered) return void ask('select 1').catch(() => undefined)
        clearInterval(pulse)
        if (client !== current) return
        lost()
        void current.end().catch(() => undefined)
      }, pulse_ms)
      pulse.unref()
      await ask(`listen ${CHANNEL}`)
      wait = FIRST_RETRY_MILLISECONDS
    } catch {
      lost()
      await current.end().catch(() => undefined)
    }
  }

  return {
    open() {
      if (is_open) return
      is_open = true
      void listen()
    },
    async close(): Promise<void> {
      is_open = false
      clearTimeout(retry)
      await client?.end().catch(() => undefined)
    },
  }
}
