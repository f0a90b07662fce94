/** The tasks of a run in which gateways are killed: what their clients sent, and how they end once nothing is killed any more. */
import { Database } from 'bun:sqlite'
import { Client } from 'pg'
import { startVideoVendor } from './video-vendor.ts'

/** Units of the currency. */
export const TASK_PRICES = { video: 3, model: 2 } as const
export const FILM = 'film/film'
type TaskKind = keyof typeof TASK_PRICES

/** A submission, as its client saw it. */
export type SentTask = {
  request_id: string
  token: string
  kind: TaskKind
  /** Absent: the client got no response, so there may be none. */
  task_id?: string
}

const PATHS = { video: '/v1/video/generations', model: '/v1/3d/generations' } as const

export const taskModels = {
  [FILM]: { families: ['video-generation'], prices: { video: TASK_PRICES.video } },
  'sandbox/text-to-3d': {
    families: ['3d-generation'],
    targets: [{ provider: 'sandbox', model: 'text-to-3d' }],
    prices: { three_d: TASK_PRICES.model },
  },
}

/** One in four fails. Its prompt is its request id: an order that arrives twice is seen. */
export const startFilmVendor = () =>
  startVideoVendor({
    now: Date.now,
    order_ms: 10,
    polls: 2,
    end: (prompt) => (prompt.endsWith('3') ? 'failed' : 'completed'),
  })

export async function sendTask(task: SentTask, { url, secret }: { url: string; secret: string }): Promise<void> {
  const body =
    task.kind === 'video'
      ? { model: FILM, prompt: task.request_id }
      : { model: 'sandbox/text-to-3d', prompt: `@sandbox quick=1\n${task.request_id}` }
  const response = await fetch(`${url}${PATHS[task.kind]}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'x-request-id': task.request_id,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  })
  const { data, task_id } = (await response.json()) as { task_id?: string; data?: { task_id?: string } }
  const id = task_id ?? data?.task_id
  if (response.ok && id !== undefined) task.task_id = id
}

/** As if the leases of ended processes had lapsed. No gateway runs. */
export async function lapseTaskLeases({ path, url }: { path: string; url: string | undefined }): Promise<void> {
  const statement = "update tasks set due_ms = 0 where due_ms is not null and status not in ('SUCCESS', 'FAILURE')"
  if (url === undefined) {
    const database = new Database(path)
    database.run(statement)
    database.close()
    return
  }
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}
