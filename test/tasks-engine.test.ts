/** A task from its acceptance to its end: how the engine handles provider responses, with an in-memory store. */
import { describe, expect, test } from 'bun:test'
import { CRASH_POINTS } from '../src/families/tasks/crash-points.ts'
import type { TaskProgress } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Task, TaskStatus } from '../src/spec/task.ts'
import type { Store } from '../src/store/store.ts'
import {
  CALLER,
  callerOf,
  type EngineOptions,
  MODEL,
  memoryFiles,
  respondInTurn,
  scriptedVendor,
  success,
  type TaskEngine,
  taskEngine,
  unless,
} from './kit/task-engine.ts'

const refusal = (code: ConstructorParameters<typeof GatewayError>[0], retry_after?: number) =>
  new GatewayError(code, `refused: ${code}`, { accepted: 'no', ...(retry_after !== undefined && { retry_after }) })
const broken = () => new GatewayError('upstream_cut', 'The connection broke.')
const hang = () => new Promise<never>(() => {})
const working = (progress?: number) => ({
  status: 'IN_PROGRESS' as const,
  ...(progress !== undefined && { progress }),
})
const seconds = (gateway: TaskEngine) => Math.floor(gateway.clock.now() / 1000)
const failure = ({ status, fail_code }: Task) => `${status} ${fail_code}`
const errorOf = async (work: Promise<unknown>) => (await work.catch((error) => error)) as GatewayError

describe('a submission', () => {
  test('is one durable row, and calls no provider before the response', async () => {
    const acme = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit({
      image: 'https://example.test/a.png',
      duration: 4,
      callback_url: 'https://me.test/x',
    })
    expect(id).toMatch(/^task_[A-Za-z0-9]{32}$/)
    expect(acme.calls).toHaveLength(0)
    const task = await gateway.read(id)
    expect(task).toMatchObject({
      status: 'NOT_START',
      progress: 0,
      token_id: CALLER.token_id,
      model: MODEL,
      request: { prompt: 'a cat', duration: 4 },
      submit_time: seconds(gateway),
      deadline_at: seconds(gateway) + 3_600,
    })
    expect(task.request).not.toHaveProperty('image')
    expect(task.request).not.toHaveProperty('callback_url')
    expect(await gateway.store.tasks.inputs(id)).toEqual({ image: 'https://example.test/a.png' })
    expect(await gateway.store.webhooks.ofTask(id)).toMatchObject({ url: 'https://me.test/x' })
  })

  test('is rejected for an unknown model or one of another family', async () => {
    await using gateway = await taskEngine()
    expect(await errorOf(gateway.submit({ model: 'acme/other' }))).toMatchObject({ code: 'model_not_found' })
    gateway.setTargets([])
    expect(await errorOf(gateway.submit())).toMatchObject({ code: 'model_not_found', detail: { param: 'model' } })
  })

  test.each([
    'http://127.0.0.1:9000/hook',
    'http://0x7f.1/hook',
    'http://10.0.0.5/',
    'https://192.168.1.1',
    'http://169.254.169.254/latest/meta-data',
    'http://[::1]:9000/',
    'http://[::ffff:10.0.0.1]/',
    'http://localhost:3000/hook',
    'http://LOCALHOST./hook',
    'http://app.localhost/hook',
  ])('is rejected at once for the private callback_url %s, and names the setting that allows it', async (url) => {
    await using gateway = await taskEngine()
    const { origin } = new URL(url)
    expect(await errorOf(gateway.submit({ callback_url: url }))).toMatchObject({
      code: 'invalid_value',
      message: expect.stringContaining(`tasks.callback_origins: ["${origin}"]`),
      detail: { param: 'callback_url' },
    })
    await using allowing = await taskEngine({ settings: { callback_origins: [`${origin}/`] } })
    expect(await allowing.submit({ callback_url: url })).toStartWith('task_')
  })

  test('is accepted for a name, which is resolved when it is called', async () => {
    await using gateway = await taskEngine()
    for (const url of ['http://hooks.internal/a', 'https://localhost.example.com', 'http://8.8.8.8/']) {
      expect(await gateway.submit({ callback_url: url })).toStartWith('task_')
    }
  })

  test('is rejected for a callback_url that is not a plain http(s) URL', async () => {
    await using gateway = await taskEngine()
    for (const callback_url of [
      'ftp://me.test/x',
      'me.test',
      '',
      'https://user:pass@me.test/',
      `https://me.test/${'x'.repeat(2_048)}`,
    ]) {
      const error = await errorOf(gateway.submit({ callback_url }))
      expect(error).toMatchObject({ code: 'invalid_value', detail: { param: 'callback_url' } })
    }
  })

  test('with the same key and the same fields returns the same task, whatever the order of the fields', async () => {
    await using gateway = await taskEngine()
    const first = await gateway.submit({ prompt: 'a dog', duration: 4 }, { key: 'k' })
    expect(await gateway.submit({ duration: 4, prompt: 'a dog' }, { key: 'k' })).toBe(first)
    expect(await gateway.submit({ prompt: 'a dog', duration: 4 }, { key: 'k2' })).not.toBe(first)
    expect(await gateway.submit({ prompt: 'a dog', duration: 4 }, { key: 'k', caller: callerOf('tok_two') })).not.toBe(
      first,
    )
    const longer = await errorOf(gateway.submit({ prompt: 'a dog', duration: 8 }, { key: 'k' }))
    expect(longer.code).toBe('idempotency_key_reused')
    const elsewhere = gateway.submit({ prompt: 'a dog', duration: 4 }, { key: 'k', family: 'chatcompat-video' })
    expect((await errorOf(elsewhere)).code).toBe('idempotency_key_reused')
  })

  test('made twice at the same time with one key creates one task', async () => {
    await using gateway = await taskEngine()
    const ids = await Promise.all(Array.from({ length: 5 }, () => gateway.submit({}, { key: 'k' })))
    expect(new Set(ids).size).toBe(1)
  })
})

describe('the lifecycle of a task', () => {
  test("goes from NOT_START to SUCCESS, each state once, and ends with the file in the gateway's storage", async () => {
    const status = respondInTurn<TaskProgress>({ status: 'QUEUED' }, working(), working(50), working(40), success())
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    const id = await gateway.submit({ image: 'data:image/png;base64,AAAA' })
    const seen: [TaskStatus, number][] = [['NOT_START', 0]]
    for (let pace = 0; pace < 80; pace++) {
      await gateway.run(0.5)
      const { status, progress } = await gateway.read(id)
      const last = seen.at(-1)
      if (last?.[0] !== status || last?.[1] !== progress) seen.push([status, progress])
    }
    expect(seen).toEqual([
      ['NOT_START', 0],
      ['QUEUED', 20],
      ['IN_PROGRESS', 30],
      ['IN_PROGRESS', 64],
      ['SUCCESS', 100],
    ])
    const task = await gateway.read(id)
    const key = `${id}/0.mp4`
    expect(task).toMatchObject({
      outputs: [{ key, content_type: 'video/mp4', bytes: 24 }],
      fail_code: '',
      fail_reason: '',
    })
    expect(task).toMatchObject({ made: null, due_ms: null, failures: 0 })
    expect(task.outputs_expire_at).toBe(task.finish_time + 30 * 86_400)
    expect(task.submit_time).toBeLessThan(task.start_time)
    expect(task.start_time).toBeLessThan(task.finish_time)
    expect(gateway.files.copied[0]?.source.url).toBe('https://files.acme.test/a.mp4')
    expect(await gateway.store.tasks.inputs(id)).toBeUndefined()
    expect(await gateway.store.usage.list({ limit: 10 })).toMatchObject([{ model: MODEL, requests: 1, errors: 0 }])
  })

  test('passes the request to the provider in the fields of the specification, with its media and one key', async () => {
    const acme = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit({ prompt: 'a dog', seed: 7, image: 'data:image/png;base64,AAAA' })
    await gateway.run(1)
    expect(acme.calls).toEqual([
      {
        model: 'film-1',
        request: expect.objectContaining({ prompt: 'a dog', seed: 7, image: 'data:image/png;base64,AAAA' }),
        task_id: id,
        idempotency_key: expect.stringMatching(new RegExp(`^${id}-[0-9a-f]{16}$`)),
        beforeSend: expect.any(Function),
        owner: 'tok_one',
      },
    ])
  })

  test('stores sent_at when a provider that announces its request announces it, not before', async () => {
    const rows: (number | null)[] = []
    const acme = scriptedVendor({
      awaits_before_send: true,
      start: async ({ task_id, beforeSend }) => {
        rows.push((await gateway.read(task_id)).sent_at)
        await beforeSend?.()
        rows.push((await gateway.read(task_id)).sent_at)
        return { operation: 'op' }
      },
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(1)
    const { sent_at } = await gateway.read(id)
    expect(rows).toEqual([null, sent_at])
    expect(sent_at).toBeGreaterThan(0)
  })

  test('sends an order again whose process died before its request was announced', async () => {
    let is_dead = false
    const dead = scriptedVendor({ awaits_before_send: true, start: () => new Promise<never>(() => {}) })
    const wrapStore = (store: Store): Store => ({ ...store, tasks: unless(() => is_dead, store.tasks) })
    await using gateway = await taskEngine({ vendors: { acme: dead }, wrapStore })
    const id = await gateway.submit()
    await gateway.advance(1)
    is_dead = true
    const alive = scriptedVendor({ awaits_before_send: true })
    await using other = await taskEngine({ store: gateway.store, clock: gateway.clock, vendors: { acme: alive } })
    await other.run(100)
    expect([dead.calls.length, alive.calls.length]).toEqual([1, 1])
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', fail_code: '' })
  })

  test('does not count an order as sent whose provider failed before it announced its request', async () => {
    const acme = scriptedVendor({
      awaits_before_send: true,
      start: respondInTurn<{ operation: string }>(new TypeError('oops'), { operation: 'op' }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(30)
    expect(acme.calls).toHaveLength(2)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'op' })
  })

  test('sends nothing when the announcement could not be stored, and tries again', async () => {
    let failures = 2
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        save: (task, change) =>
          change.sent_at && failures-- > 0 ? Promise.reject(new Error('disk full')) : store.tasks.save(task, change),
      },
    })
    let sent = 0
    const acme = scriptedVendor({
      awaits_before_send: true,
      start: async ({ beforeSend }) => {
        await beforeSend?.()
        return { operation: `op ${++sent}` }
      },
    })
    await using gateway = await taskEngine({ vendors: { acme }, wrapStore })
    const id = await gateway.submit()
    await gateway.run(30)
    expect([acme.calls.length, sent]).toEqual([3, 1])
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'op 1' })
  })

  test.each([
    ['a minute', 60],
    ['longer than the lease lasts', 200],
  ])('keeps an accepted order while the store is not available for %s', async (_, seconds) => {
    let fails_until: number | undefined
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        claim: (claim) => (isDown() ? Promise.reject(new Error('down')) : store.tasks.claim(claim)),
        save: (task, change) => (isDown() ? Promise.reject(new Error('down')) : store.tasks.save(task, change)),
      },
    })
    const isDown = () => fails_until !== undefined && gateway.clock.now() < fails_until
    const acme = scriptedVendor({
      async start() {
        fails_until = gateway.clock.now() + seconds * 1000
        return { operation: 'op' }
      },
    })
    await using gateway = await taskEngine({ vendors: { acme }, wrapStore })
    const id = await gateway.submit()
    await gateway.advance(seconds + 60)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'op' })
    expect(acme.calls).toHaveLength(1)
  })

  test('stores sent_at and the target before it calls the provider', async () => {
    const rows: Task[] = []
    const acme = scriptedVendor({
      start: async ({ task_id }) => {
        rows.push(await gateway.read(task_id))
        return { operation: 'op' }
      },
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    await gateway.submit()
    await gateway.run(1)
    expect(rows).toMatchObject([
      { status: 'SUBMITTED', provider: 'acme', upstream_model: 'film-1', sent_at: expect.any(Number) },
    ])
  })

  test('retains files for the keep_days of the model', async () => {
    await using gateway = await taskEngine({ keep_days: 0.5 })
    const id = await gateway.submit()
    await gateway.run(10)
    const task = await gateway.read(id)
    expect(task.outputs_expire_at).toBe(task.finish_time + 43_200)
  })
})

describe('the inputs', () => {
  test('that are invalid end the task with the reason', async () => {
    const checkInputs = async () => {
      throw new GatewayError('invalid_value', '"image" is no image.', { param: 'image' })
    }
    const acme = scriptedVendor()
    await using gateway = await taskEngine({ checkInputs, vendors: { acme } })
    const id = await gateway.submit({ image: 'https://example.test/a.png' })
    await gateway.run(1)
    expect(await gateway.read(id)).toMatchObject({
      status: 'FAILURE',
      fail_code: 'input_media_invalid',
      fail_reason: '"image" is no image.',
      start_time: 0,
    })
    expect(acme.calls).toHaveLength(0)
  })

  test('that cannot be fetched now are retried, five times in all', async () => {
    let tries = 0
    const checkInputs = async () => {
      tries++
      throw new GatewayError('upstream_unreachable', 'The host of "image" cannot be reached.')
    }
    await using gateway = await taskEngine({ checkInputs })
    const id = await gateway.submit({ image: 'https://example.test/a.png' })
    await gateway.run(20)
    expect(tries).toBe(4)
    expect(await gateway.read(id)).toMatchObject({ status: 'NOT_START', failures: 4 })
    await gateway.run(20)
    expect(tries).toBe(5)
    expect(failure(await gateway.read(id))).toBe('FAILURE input_media_invalid')
  })

  test('that were fetched at the third attempt leave no failures behind', async () => {
    let tries = 0
    const checkInputs = async () => {
      if (tries++ < 2) throw new GatewayError('upstream_unreachable', 'The host of "image" cannot be reached.')
    }
    const acme = scriptedVendor({ start: hang })
    await using gateway = await taskEngine({ checkInputs, vendors: { acme } })
    const id = await gateway.submit({ image: 'https://example.test/a.png' })
    await gateway.advance(15)
    expect(acme.calls).toHaveLength(1)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUBMITTED', failures: 0 })
  })

  test('are deleted once the order is accepted', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working()) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit({ image: 'https://example.test/a.png' })
    expect(await gateway.store.tasks.inputs(id)).toBeDefined()
    await gateway.run(1)
    expect(await gateway.read(id)).toMatchObject({ status: 'QUEUED' })
    expect(await gateway.store.tasks.inputs(id)).toBeUndefined()
  })

  test('are not checked if there are none', async () => {
    let tries = 0
    await using gateway = await taskEngine({ checkInputs: async () => void tries++ })
    await gateway.submit()
    await gateway.run(1)
    expect(tries).toBe(0)
  })
})

describe('an order that was certainly not accepted', () => {
  test.each([
    'rate_limit_exceeded',
    'upstream_auth',
    'bad_upstream_response',
    'upstream_unreachable',
    'model_not_found',
    'insufficient_quota',
  ] as const)('(%s) goes to the next target', async (code) => {
    const acme = scriptedVendor({ start: respondInTurn<never>(refusal(code)) })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    const id = await gateway.submit()
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', provider: 'zenith', tried: ['acme/film-1'] })
    expect([acme.calls.length, zenith.calls.length]).toEqual([1, 1])
    expect(acme.calls[0]?.idempotency_key).not.toBe(zenith.calls[0]?.idempotency_key as string)
  })

  test.each([
    ['content_policy_violation', 'content_policy_violation'],
    ['upstream_invalid_request', 'invalid_input'],
    ['unsupported_value', 'invalid_input'],
  ] as const)('(%s) ends the task if every target would refuse it', async (code, fail_code) => {
    const acme = scriptedVendor({ start: respondInTurn<never>(refusal(code)) })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    const id = await gateway.submit()
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({
      status: 'FAILURE',
      fail_code,
      fail_reason: `refused: ${code}`,
      due_ms: null,
    })
    expect(zenith.calls).toHaveLength(0)
  })

  test('is retried after a pause if the refusal is temporary and no other target is left', async () => {
    const acme = scriptedVendor({
      start: respondInTurn<{ operation: string }>(refusal('rate_limit_exceeded'), refusal('upstream_unreachable'), {
        operation: 'op',
      }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(1)
    expect(acme.calls).toHaveLength(1)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUBMITTED', sent_at: null, failures: 1 })
    await gateway.run(30)
    expect(acme.calls).toHaveLength(3)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', failures: 0 })
  })

  test('is retried at the time that the provider requested', async () => {
    const acme = scriptedVendor({
      start: respondInTurn<{ operation: string }>(refusal('rate_limit_exceeded', 120), { operation: 'op' }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    await gateway.submit()
    await gateway.run(119)
    expect(acme.calls).toHaveLength(1)
    await gateway.run(3)
    expect(acme.calls).toHaveLength(2)
  })

  test('is retried in eight rounds, and then ends with the code of the refusal', async () => {
    const acme = scriptedVendor({ start: respondInTurn<never>(refusal('rate_limit_exceeded')) })
    const zenith = scriptedVendor({ start: respondInTurn<never>(refusal('upstream_auth')) })
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    const id = await gateway.submit()
    await gateway.run(900)
    expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code: 'upstream_auth' })
    expect(acme.calls.length).toBeGreaterThan(7)
    expect(acme.calls.length).toBeLessThan(20)

    const lone = scriptedVendor({ start: respondInTurn<never>(refusal('rate_limit_exceeded')) })
    await using other = await taskEngine({ vendors: { lone } })
    const second = await other.submit()
    await other.run(300)
    expect(failure(await other.read(second))).toBe('FAILURE upstream_rate_limited')
    expect(lone.calls).toHaveLength(8)
  })

  test('is not retried if the refusal is permanent', async () => {
    const acme = scriptedVendor({ start: respondInTurn<never>(refusal('upstream_auth')) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(60)
    expect(failure(await gateway.read(id))).toBe('FAILURE upstream_auth')
    expect(acme.calls).toHaveLength(1)
  })
})

describe('an order in doubt', () => {
  const doubts: [string, () => Promise<never>][] = [
    ['a broken connection', async () => Promise.reject(broken())],
    ['a fault of the adapter', async () => Promise.reject(new TypeError('x is undefined'))],
    [
      'a refusal that does not say that nothing was taken',
      async () => Promise.reject(new GatewayError('rate_limit_exceeded', 'no')),
    ],
    ['a vendor that never answers', hang],
  ]

  test.each(doubts)('(%s) is never sent again without an idempotency key', async (_, start) => {
    const acme = scriptedVendor({ start })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    const id = await gateway.submit()
    await gateway.advance(200)
    expect(await gateway.read(id)).toMatchObject({
      status: 'FAILURE',
      fail_code: 'submit_outcome_unknown',
      operation: null,
    })
    expect([acme.calls.length, zenith.calls.length]).toEqual([1, 0])
  })

  test.each(doubts)(
    '(%s) is repeated with the same key if the provider honours it, never at another target',
    async (_, start) => {
      let calls = 0
      const acme = scriptedVendor({
        resubmit: 'safe',
        start: (call, signal) =>
          calls++ < 2 ? start() : Promise.resolve({ operation: [call.task_id, signal.aborted] }),
      })
      const zenith = scriptedVendor()
      await using gateway = await taskEngine({ vendors: { acme, zenith } })
      const id = await gateway.submit()
      await gateway.advance(200)
      expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', provider: 'acme' })
      expect(acme.calls).toHaveLength(3)
      expect(new Set(acme.calls.map(({ idempotency_key }) => idempotency_key)).size).toBe(1)
      expect(zenith.calls).toHaveLength(0)
    },
  )

  test('stays in doubt when its repetition is refused temporarily, and ends so at the deadline', async () => {
    const acme = scriptedVendor({
      resubmit: 'safe',
      start: respondInTurn<never>(broken(), refusal('rate_limit_exceeded')),
    })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith }, settings: { deadline_minutes: 5 } })
    const id = await gateway.submit()
    await gateway.run(290)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUBMITTED', operation: null })
    await gateway.run(20)
    expect(failure(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
    expect(zenith.calls).toHaveLength(0)
  })

  test('ends with the reason when its repetition is refused permanently', async () => {
    const acme = scriptedVendor({
      resubmit: 'safe',
      start: respondInTurn<never>(broken(), refusal('content_policy_violation')),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(30)
    expect(failure(await gateway.read(id))).toBe('FAILURE content_policy_violation')
  })

  test('is not lost when the store is unavailable for some seconds after its response', async () => {
    let is_away = false
    const acme = scriptedVendor({
      start: async () => {
        is_away = true
        setImmediate(() =>
          setImmediate(() =>
            gateway.clock.after(3_000, () => {
              is_away = false
            }),
          ),
        )
        return { operation: 'paid' }
      },
    })
    await using gateway = await taskEngine({
      vendors: { acme },
      wrapStore: (store) => ({
        ...store,
        tasks: {
          ...store.tasks,
          save: (task, change) =>
            is_away ? Promise.reject(new Error('the disk is full')) : store.tasks.save(task, change),
        },
      }),
    })
    const id = await gateway.submit()
    await gateway.advance(20)
    expect(await gateway.read(id)).toMatchObject({ operation: 'paid', status: 'SUCCESS' })
    expect(acme.calls).toHaveLength(1)
  })
})

test('the tests of this file reach every crash point', async () => {
  const met = new Set<string>()
  const at = (point: string) => void met.add(point)
  const way = async (acme: ReturnType<typeof scriptedVendor>, options: EngineOptions = {}, cancels = false) => {
    await using gateway = await taskEngine({ ...options, vendors: { acme }, crashHook: at })
    const id = await gateway.submit()
    await gateway.run(6)
    if (cancels) await gateway.tasks.cancel(id, CALLER)
    await gateway.run(300)
  }
  let copies = 0
  const files = memoryFiles({ copy: async () => (copies++ === 0 ? { done: false, bytes: 1 } : undefined) })
  await way(
    scriptedVendor({ status: respondInTurn<TaskProgress>(working(), success('https://a.test/1', 'https://a.test/2')) }),
    { files },
  )
  await way(scriptedVendor({ start: respondInTurn<never>(refusal('upstream_unreachable')) }))
  await way(
    scriptedVendor({ resubmit: 'safe', start: respondInTurn<{ operation: string }>(broken(), { operation: 'op' }) }),
  )
  await way(scriptedVendor({ status: respondInTurn<TaskProgress>(working()), cancel: async () => {} }), {}, true)
  await way(scriptedVendor({ status: respondInTurn<TaskProgress>(working()) }), { settings: { deadline_minutes: 1 } })
  await way(
    scriptedVendor({
      status: respondInTurn<TaskProgress>({ status: 'PROCEED' }, success()),
      proceed: async () => ({ operation: 'second' }),
    }),
  )
  expect([...met].toSorted()).toEqual([...CRASH_POINTS].toSorted())
})

test('a repeated request returns its task, whatever has become of the model since', async () => {
  await using gateway = await taskEngine()
  const first = await gateway.submit({}, { key: 'again' })
  gateway.setTargets([])
  expect(await gateway.submit({}, { key: 'again' })).toBe(first)
  await expect(gateway.submit({ seed: 1 }, { key: 'again' })).rejects.toMatchObject({ code: 'model_not_found' })
  await expect(gateway.submit({}, { key: 'another' })).rejects.toMatchObject({ code: 'model_not_found' })
})
