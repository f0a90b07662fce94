/**
 * Every way in which the response to an order can fail, at providers that honour keys, at providers that do not, and with
 * a second target: in the end the providers must have counted at most one order for each task.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createLog } from '../src/kit/log.ts'
import { createProvider } from '../src/providers/registry.ts'
import { createTransport } from '../src/providers/upstream/transport.ts'
import type { Task } from '../src/spec/task.ts'
import type { Store } from '../src/store/store.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { ENGINES } from './kit/engines.ts'
import { type Hold, type OrderFault, type OrderVendor, startOrderVendor } from './kit/order-vendor.ts'
import { settled, type TaskEngine, taskEngine } from './kit/task-engine.ts'
import { type Answer, failure, hangUp, raw, reset, whole } from './kit/vendor.ts'

const FIRST_BYTE_SECONDS = 300
const TIMEOUTS = { connect_seconds: 10, first_byte_seconds: FIRST_BYTE_SECONDS, idle_seconds: 300, total_seconds: 600 }
const MODES = ['with keys', 'without keys', 'with two targets'] as const

const redirect = (status: number) => whole('', { status, headers: { location: '/v1/videos' } })
const cut = (bytes: string) => raw(bytes, { close: true })
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'

type Fault = Answer | 'silence' | 'lateness' | Answer[]

/** Accepted orders whose responses do not confirm it. */
const FAULTS: [string, Fault][] = [
  ['500', failure(500)],
  ['501', failure(501)],
  ['502 of a proxy', whole('<html>', { status: 502 })],
  ['503 with a time to wait', failure(503, {}, { 'retry-after': '3' })],
  ['504', failure(504)],
  ['520', failure(520)],
  ['529', failure(529)],
  ['302', redirect(302)],
  ['307', redirect(307)],
  ['308', redirect(308)],
  ['408', failure(408)],
  ['409', failure(409)],
  ['500, and 409 while it is under way', [failure(500), failure(409), failure(409, { code: 'in_progress' })]],
  ['500, and a refused repetition', [failure(500), failure(429), failure(401), failure(503)]],
  ['a connection closed before the answer', hangUp()],
  ['a connection reset before the answer', reset()],
  ['a connection closed within the head', cut('HTTP/1.1 200 OK\r\ncontent-')],
  ['a connection closed within the body', cut(`${HEAD}content-length: 90\r\n\r\n{"id":"vid`)],
  ['a chunked body that is cut', cut(`${HEAD}transfer-encoding: chunked\r\n\r\n9\r\n{"id":"vi\r\n`)],
  ['no answer in time', 'silence'],
  ['200 with a page', whole('<html>', { headers: { 'content-type': 'text/html' } })],
  ['200 with half a JSON', whole('{"id":"video_')],
  ['200 without an id', whole({ object: 'video', status: 'queued' })],
  ['200 with nothing', whole('')],
  ['200 with an error', whole({ error: { code: 'server_error', message: 'Oops.' } })],
]

const ENGINES_ON_DISK = ENGINES.filter(({ name }) => name !== 'sqlite in memory')

type World = { gateway: TaskEngine; clock: ManualClock; vendors: OrderVendor[]; [Symbol.asyncDispose](): Promise<void> }

async function worldOf(store: Store, mode: (typeof MODES)[number], fault: Fault | { refusal: Answer }): Promise<World> {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const transport = createTransport({ clock, log })
  const faultOf = (hold: Hold): OrderFault => {
    if (fault === 'silence') return { answers: [hold(hangUp())] }
    if (fault === 'lateness') return { answers: [hold(whole({ id: 'video_0', status: 'queued' }))] }
    if ('refusal' in fault) return { answers: [fault.refusal], isAccepted: false }
    return { answers: Array.isArray(fault) ? fault : [fault] }
  }
  const vendors = [
    startOrderVendor({ keys: mode === 'with keys', fault: faultOf }),
    ...(mode === 'with two targets' ? [startOrderVendor({ keys: false, fault: () => ({ answers: [] }) })] : []),
  ]
  const providers = vendors.map(({ url }, index) => {
    const config = { kind: 'chatcompat-video' as const, base_url: url, key: 'vendor-key' }
    const options = { idempotent: mode === 'with keys' }
    const parts = { id: `vendor${index}`, config: { ...config, options }, timeouts: TIMEOUTS, environment: {} }
    return createProvider({ ...parts, transport, clock, log, manual: async () => [] })
  })
  const gateway = await taskEngine({
    store,
    clock,
    vendors: Object.fromEntries(providers.flatMap(({ id, video }) => (video ? [[id, video]] : []))),
    providers: Object.fromEntries(providers.map(({ id }) => [id, { first_byte_seconds: FIRST_BYTE_SECONDS }])),
  })
  return {
    gateway,
    clock,
    vendors,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]()
      await Promise.all(vendors.map((vendor) => vendor.stop()))
    },
  }
}

const isEnded = ({ status }: Task) => status === 'SUCCESS' || status === 'FAILURE'

/** Advances time until the task has ended; with a silent provider, until the gateway gives up. */
async function endOf({ gateway, clock, vendors }: World, task_id: string): Promise<Task> {
  for (let pace = 0; pace < 8_000; pace++) {
    const silence = vendors[0]?.untilHeld()
    const isSilent = await Promise.race([gateway.tasks.idle().then(() => false), silence?.then(() => true)])
    const task = await gateway.read(task_id)
    if (isEnded(task)) return task
    // An order in doubt is looked up until its deadline: no need to watch each half second of an hour.
    clock.advance(isSilent ? FIRST_BYTE_SECONDS * 1000 : pace < 300 ? 500 : 10_000)
    await settled()
  }
  throw new Error('The task does not end.')
}

/** Waits until the order has reached the provider, which does not respond. */
async function untilSilent({ gateway, clock, vendors }: World): Promise<void> {
  let isSilent = false
  const silence = vendors[0]?.untilHeld().then(() => {
    isSilent = true
  })
  while (!isSilent) {
    await Promise.race([gateway.tasks.idle(), silence])
    clock.advance(20)
    await settled()
  }
}

describe.each(ENGINES_ON_DISK.map((engine) => [engine.name, engine] as const))('on %s', (_, engine) => {
  let store: Store
  beforeAll(async () => {
    store = await engine.open()
  })
  afterAll(() => engine.cleanup())

  describe.each(MODES)('an order %s', (mode) => {
    test.each(FAULTS)('with the fault %s is accepted once', async (_, fault) => {
      await using world = await worldOf(store, mode, fault)
      const [first, second] = world.vendors
      const task = await endOf(world, await world.gateway.submit())
      expect(first?.accepted).toHaveLength(1)
      expect(second?.received ?? []).toEqual([])
      if (mode === 'with keys') {
        expect(task).toMatchObject({ status: 'SUCCESS', operation: { id: 'video_0' } })
        expect(first?.received.length).toBe(Array.isArray(fault) ? fault.length + 1 : 2)
        expect(new Set(first?.received).size).toBe(1)
      } else {
        expect(task).toMatchObject({ status: 'FAILURE', fail_code: 'submit_outcome_unknown', operation: null })
        expect(task.fail_reason).toContain('may have been charged')
        expect(first?.received).toHaveLength(1)
      }
    })
  })

  test.each([
    [FIRST_BYTE_SECONDS - 1, 'SUCCESS', ''],
    [FIRST_BYTE_SECONDS + 1, 'FAILURE', 'submit_outcome_unknown'],
  ])('with a response that starts after %d s becomes %s', async (seconds, status, fail_code) => {
    await using world = await worldOf(store, 'without keys', 'lateness')
    const [vendor] = world.vendors
    const id = await world.gateway.submit()
    await untilSilent(world)
    world.clock.advance(seconds * 1000)
    vendor?.release()
    expect(await endOf(world, id)).toMatchObject({ status, fail_code })
    expect([vendor?.received.length, vendor?.accepted.length]).toEqual([1, 1])
  })

  test.each([
    [400, 0, 'FAILURE'],
    [401, 1, 'SUCCESS'],
    [403, 1, 'SUCCESS'],
    [404, 1, 'SUCCESS'],
    [429, 1, 'SUCCESS'],
  ] as const)('that is refused with %d was not accepted: %d at the next target, %s', async (status, count, end) => {
    await using world = await worldOf(store, 'with two targets', { refusal: failure(status) })
    const [first, second] = world.vendors
    const task = await endOf(world, await world.gateway.submit())
    expect([first?.received.length, first?.accepted.length]).toEqual([1, 0])
    expect([second?.accepted.length, task.status]).toEqual([count, end])
  })
})
