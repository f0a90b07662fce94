/** A task that may have been ordered after a backup was taken is not ordered again by the gateway that it is restored into. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, DEFAULT_OUTPUTS } from '../src/config/config.ts'
import { restoreBackup } from '../src/store/backup/restore-backup.ts'
import { writeBackup } from '../src/store/backup/write-backup.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { startMeshyVendor } from './kit/meshy-vendor.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

type Plan = Pick<Config, 'providers' | 'models'> & {
  /** The first gateway fails here, and is backed up then. */
  point: string
  /** Creates it, and waits until it fails; the result is its id. */
  begin(first: TestGateway, hasFailed: () => Promise<boolean>): Promise<string>
  /** Ends it at the first gateway, after the backup. */
  complete(first: TestGateway, id: string): Promise<unknown>
  /** A gateway has started. */
  onStart?(gateway: TestGateway): void
}

/** What the second gateway, which has the backup, makes of it. */
async function restored<T>(
  { point, begin, complete, onStart, ...config }: Plan,
  read: (second: TestGateway, id: string, token: string) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-restored-orders-'))
  const state = { isDue: true, hasFailed: false }
  const placesOf = (name: string) => ({
    url: `sqlite:${join(directory, name, 'gatehouse.db')}`,
    outputs: join(directory, name, 'outputs'),
  })
  async function start(name: 'first' | 'second') {
    const { url: store_url, outputs } = placesOf(name)
    const gateway = await startGateway(
      {
        sandbox: false,
        data_dir: join(directory, name),
        outputs: { ...DEFAULT_OUTPUTS, directory: outputs },
        ...config,
      },
      {
        store_url,
        crashHook(reached) {
          if (name === 'second' || reached !== point || !state.isDue) return
          state.hasFailed = true
          throw new Error('the gateway fails here')
        },
      },
    )
    onStart?.(gateway)
    return gateway
  }
  try {
    const path = join(directory, 'taken.backup')
    let [id, token, now_ms] = ['', '', 0]
    {
      await using first = await start('first')
      token = first.token
      id = await begin(first, async () => state.hasFailed)
      const { url, outputs } = placesOf('first')
      const made_at = new Date(first.clock.now()).toISOString()
      await writeBackup({ url, path, version: '1.2.3', made_at, outputs: { directory: outputs } })
      state.isDue = false
      await complete(first, id)
      now_ms = first.clock.now() + 60_000
    }
    await restoreBackup({ path, ...placesOf('second'), now_ms })
    await using second = await start('second')
    second.clock.advance(now_ms - second.clock.now())
    return await read(second, id, token)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function runTasks(gateway: TestGateway, isReached: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 2_000; round++) {
    if (await isReached()) return
    await gateway.instance.tasks.idle()
    gateway.clock.advance(1_000)
  }
  throw new Error('The tasks did not come so far.')
}

/** Of a task at this path. */
async function restoredTask(
  path: string,
  { json, isRefused, ...plan }: Omit<Plan, 'begin' | 'complete'> & { json: object; isRefused?: () => Promise<boolean> },
) {
  type Seen = { data: { status: string; fail_code: string } }
  const endAt = async (gateway: TestGateway, id: string, token = gateway.token) => {
    const headers = { authorization: `Bearer ${token}` }
    const seen = async () => (await (await gateway.call(`${path}/${id}`, { headers })).json()) as Seen
    await runTasks(gateway, async () => ['SUCCESS', 'FAILURE'].includes((await seen()).data.status))
    const { status, fail_code } = (await seen()).data
    return { status, fail_code }
  }
  return restored(
    {
      ...plan,
      async begin(first, hasFailed) {
        const created = (await (await first.call(path, { json })).json()) as { data: { task_id: string } }
        await runTasks(first, isRefused ?? hasFailed)
        await first.instance.tasks.idle()
        return created.data.task_id
      },
      async complete(first, id) {
        expect(await endAt(first, id)).toEqual({ status: 'SUCCESS', fail_code: '' })
      },
    },
    endAt,
  )
}

const DOUBTED = { status: 'FAILURE', fail_code: 'submit_outcome_unknown' }

test('a video that may have been ordered after the backup is not ordered again', async () => {
  let wasRefused = false
  const vendor = startVideoVendor({
    idempotent: false,
    refusesFirst() {
      wasRefused = true
      return true
    },
  })
  try {
    const providers: Plan['providers'] = { film: { kind: 'chatcompat-video', base_url: vendor.url, key: 'acme-key' } }
    const models: Plan['models'] = { 'film/film': { families: ['video-generation'] } }
    const json = { model: 'film/film', prompt: 'a boat', seconds: 4 }
    const plan = { point: '', isRefused: async () => wasRefused, providers, models, json }
    expect(await restoredTask('/v1/video/generations', plan)).toEqual(DOUBTED)
    expect(vendor.orders).toHaveLength(1)
  } finally {
    await vendor.stop()
  }
})

test.each([
  ['another target has accepted', ['film', 'other'], [0, 1]],
  ['the same one has accepted later', ['film'], [1, 0]],
])('a video that was in doubt at a target, and that %s since, is not ordered again', async (_, names, orders) => {
  const clock: { now?: () => number } = {}
  const refusals = [500, 429]
  const refusing = startVideoVendor({
    idempotent: false,
    lists: true,
    refusals,
    now: () => clock.now?.() ?? 0,
  })
  const other = startVideoVendor({ idempotent: false })
  try {
    const film = { kind: 'chatcompat-video', key: 'acme-key', options: { list: 'complete' } } as const
    const providers: Plan['providers'] = {
      film: { ...film, base_url: refusing.url },
      other: { ...film, base_url: other.url },
    }
    const targets = names.map((provider, priority) => ({ provider, model: 'film', priority }))
    const models: Plan['models'] = { 'film/film': { families: ['video-generation'], targets } }
    const json = { model: 'film/film', prompt: 'a boat', seconds: 4 }
    const plan = { point: '', isRefused: async () => refusals.length === 1, providers, models, json }
    const onStart = ({ clock: started }: TestGateway) => void Object.assign(clock, { now: started.now })
    expect(await restoredTask('/v1/video/generations', { ...plan, onStart })).toEqual(DOUBTED)
    expect([refusing.orders.length, other.orders.length]).toEqual(orders)
  } finally {
    await Promise.all([refusing.stop(), other.stop()])
  }
})

test('neither is the second part of a 3D model', async () => {
  const vendor = startMeshyVendor()
  try {
    const providers: Plan['providers'] = { meshy: { kind: 'meshy', base_url: vendor.url, key: 'msy_key' } }
    const models: Plan['models'] = { 'meshy/meshy-6': { families: ['3d-generation'] } }
    const json = { model: 'meshy/meshy-6', prompt: 'a chair' }
    const plan = { point: 'proceed: before the mark', providers, models, json }
    expect(await restoredTask('/v1/3d/generations', plan)).toEqual(DOUBTED)
    expect(vendor.orders.map(({ mode }) => mode)).toEqual(['preview', 'refine'])
  } finally {
    await vendor.stop()
  }
})
