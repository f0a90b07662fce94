/** The machine's clock is set by two hours while the gateway runs: work in progress neither fails nor waits for it. */
import { afterEach, describe, expect, test } from 'bun:test'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import { FILM } from './kit/crash-gateway.ts'
import { ENGINES } from './kit/engines.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

const STEP_MILLISECONDS = 2 * 3_600_000
/** Less than the step, so that it matters in either direction. */
const DEADLINE_MINUTES = 60

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(store_url: string) {
  const vendor = startVideoVendor({ polls: 3 })
  let failing = true
  /** Webhooks by their id: one may arrive twice. */
  const delivered = new Set<string | null>()
  const receiver = Bun.serve({
    port: 0,
    fetch({ headers }) {
      if (!failing) delivered.add(headers.get('webhook-id'))
      return new Response(null, { status: failing ? 500 : 200 })
    },
  })
  const gateway = await startGateway(
    {
      providers: { acme: { kind: 'chatcompat-video', base_url: vendor.url, key: 'acme-key' } },
      models: { [FILM]: { families: ['video-generation'] } },
      tasks: { ...DEFAULT_TASKS, deadline_minutes: DEADLINE_MINUTES, callback_origins: [receiver.url.origin] },
    },
    { store_url },
  )
  closing.push(
    () => vendor.stop(),
    () => receiver.stop(true),
    () => gateway[Symbol.asyncDispose](),
  )
  return {
    gateway,
    callback_url: receiver.url.href,
    receive() {
      failing = false
    },
    delivered: () => delivered.size,
  }
}

/** Lets this much time pass, second by second; returns the seconds after which the condition held. */
async function secondsUntil(gateway: TestGateway, limit: number, isDone: () => Promise<boolean>): Promise<number> {
  for (let second = 0; second <= limit; second++) {
    await Promise.all([gateway.instance.tasks.idle(), gateway.instance.webhooks.idle()])
    for (let turn = 0; turn < 20; turn++) await Bun.sleep(0) // answers on loopback
    if (await isDone()) return second
    gateway.clock.advance(1_000)
  }
  return Number.POSITIVE_INFINITY
}

const jsonOf = async (answer: Promise<Response>) => (await answer).json()

for (const engine of ENGINES.filter(({ url }) => url)) {
  describe.each([
    ['forward', STEP_MILLISECONDS],
    ['back', -STEP_MILLISECONDS],
  ])(`${engine.name}: a clock that is set %s`, (_, step) => {
    afterEach(() => engine.cleanup())

    test('delays no task and no webhook, and fails none', async () => {
      await engine.open()
      const { gateway, callback_url, receive, delivered } = await start(engine.url?.() ?? '')
      const path = '/v1/video/generations'
      const read = async (task_id: string) => (await jsonOf(gateway.call(`${path}/${task_id}`))).data
      const submit = async () =>
        (await jsonOf(gateway.call(path, { json: { model: FILM, prompt: 'A kite', callback_url } }))).data.task_id
      const earlier = await submit()
      expect(await secondsUntil(gateway, 60, async () => (await read(earlier)).status === 'QUEUED')).toBeLessThan(60)
      gateway.clock.jump(step)
      const later = await submit()
      const ended = async () => {
        const tasks = await Promise.all([earlier, later].map(read))
        return tasks.every(({ status }) => status === 'SUCCESS' || status === 'FAILURE')
      }
      expect(await secondsUntil(gateway, 300, ended)).toBeLessThan(300)
      expect([(await read(earlier)).status, (await read(later)).status]).toEqual(['SUCCESS', 'SUCCESS'])
      // The receiver has failed so far; the next attempts are due within two minutes, or ten after a slow start.
      gateway.clock.jump(-step)
      receive()
      expect(await secondsUntil(gateway, 610, async () => delivered() === 2)).toBeLessThan(610)
    }, 120_000)

    test('ends no task at its deadline that is submitted before this process has noticed', async () => {
      const store = await engine.open()
      const { gateway, callback_url } = await start(engine.url?.() ?? '')
      gateway.clock.jump(step)
      // Another process has.
      expect(await store.dueTimes.move(step, await store.dueTimes.moves())).toBe(true)
      const json = { model: FILM, prompt: 'A kite', callback_url }
      const { task_id } = (await jsonOf(gateway.call('/v1/video/generations', { json }))).data
      const ended = async () => {
        const { status } = (await jsonOf(gateway.call(`/v1/video/generations/${task_id}`))).data
        return status === 'SUCCESS' || status === 'FAILURE'
      }
      expect(await secondsUntil(gateway, 300, ended)).toBeLessThan(300)
      const { data } = await jsonOf(gateway.call(`/v1/video/generations/${task_id}`))
      expect(data.status).toBe('SUCCESS')
    }, 120_000)

    test('delays no response in the background', async () => {
      await engine.open()
      const { gateway } = await start(engine.url?.() ?? '')
      const read = (id: string) => jsonOf(gateway.call(`/v1/responses/${id}`))
      const submit = () =>
        jsonOf(gateway.call('/v1/responses', { json: { model: 'sandbox/general', input: 'Hi', background: true } }))
      const { id: first } = await submit()
      gateway.clock.jump(step)
      const { id: second } = await submit()
      const completed = async () =>
        (await Promise.all([first, second].map(read))).every(({ status }) => status === 'completed')
      expect(await secondsUntil(gateway, 60, completed)).toBeLessThan(60)
    }, 120_000)
  })
}

test('durations in the access log are those of the steady clock', async () => {
  const { gateway } = await start('sqlite::memory:')
  const call = gateway.call('/v1/models')
  gateway.clock.jump(-STEP_MILLISECONDS)
  await call
  expect(gateway.logged()).toMatch(/"path":"\/v1\/models".*"total_ms":0/)
})
