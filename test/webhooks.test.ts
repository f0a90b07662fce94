/** Webhooks from the end of a task to their receiver, with an in-memory store and a manual clock. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import { blankTask } from '../src/families/tasks/lifecycle.ts'
import { webhookMasterSecret } from '../src/families/tasks/webhook-delivery.ts'
import { createWebhooks, type WebhookParts } from '../src/families/tasks/webhooks.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createGuardedFetch, type GuardedAnswer, type GuardedRequest } from '../src/kit/guarded-fetch.ts'
import { createLog } from '../src/kit/log.ts'
import type { Task } from '../src/spec/task.ts'
import { openStore } from '../src/store/open-store.ts'
import type { Store } from '../src/store/store.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { startGateway } from './kit/gateway.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const MASTER = 'a master secret of forty-eight characters or so.'

type Script = (request: GuardedRequest, at_ms: number) => number | Promise<number | Partial<GuardedAnswer>> | Error

let store: Store
let clock: ManualClock
let logged: string
const running: { stop(options: { deadline_ms: number }): Promise<void> }[] = []

beforeEach(async () => {
  store = await openStore({ url: 'sqlite::memory:' })
  clock = manualClock()
  logged = ''
})
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop({ deadline_ms: 0 })
  await store.close()
})

const hang = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

/** A receiver that responds by a script and records its requests. */
function receiver(script: Script) {
  const got: (GuardedRequest & { at_ms: number })[] = []
  const guardedFetch = async (request: GuardedRequest): Promise<GuardedAnswer> => {
    got.push({ ...request, at_ms: clock.now() })
    const said = await script(request, clock.now())
    if (said instanceof Error) throw said
    const answer = typeof said === 'number' ? { status: said } : said
    return { status: 200, headers: new Headers(), url: request.url, body: new ReadableStream(), ...answer }
  }
  return { got, guardedFetch }
}

const describeTask = ({ task_id, status, fail_code, fail_reason, submit_time, start_time, finish_time }: Task) => ({
  task_id,
  status,
  progress: '100%',
  ...(status === 'SUCCESS' ? { outputs: [`http://gateway.test/${task_id}?signed`] } : {}),
  submit_time,
  start_time,
  finish_time,
  fail_code,
  fail_reason,
})

function webhooks(guardedFetch: WebhookParts['guardedFetch'], more: Partial<WebhookParts> = {}) {
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => (logged += text) })
  const made = createWebhooks({
    store,
    guardedFetch,
    master_secret: MASTER,
    describe: describeTask,
    clock,
    log,
    ...more,
  })
  running.push(made)
  return { ...made, log }
}

let made = 0
type Ordered = { url?: string; token_id?: string; status?: 'SUCCESS' | 'FAILURE' }

/** An unfinished task with a webhook. */
async function order({ url = 'https://app.test/hook?key=hush', token_id = 'tok_a' }: Ordered = {}): Promise<Task> {
  const now = Math.floor(clock.now() / 1000)
  const task = blankTask({
    task_id: `task_${String(++made).padStart(32, '0')}`,
    token_id,
    family: 'video-generation',
    model: 'sandbox/text-to-video',
    status: 'QUEUED',
    progress: 20,
    submit_time: now,
    request: { model: 'sandbox/text-to-video', prompt: 'a boat' },
    base_url: 'http://gateway.test',
    provider: 'sandbox',
    upstream_model: 'text-to-video',
    sent_at: now,
    sent_to: null,
    provider_key: null,
    call_options: null,
    trace: null,
    operation: { id: '1' },
    deadline_at: now + 3600,
    due_ms: clock.now(),
  })
  await store.tasks.add({ task, callback: { callback_id: `evt_${made}`, url } })
  return task
}

async function end({ task_id, fence }: Task, status: 'SUCCESS' | 'FAILURE' = 'SUCCESS'): Promise<void> {
  const finish_time = Math.floor(clock.now() / 1000)
  const why = status === 'FAILURE' ? ({ fail_code: 'no_output', fail_reason: 'Nothing came.' } as const) : {}
  expect(await store.tasks.save({ task_id, fence }, { status, finish_time, ...why, due_ms: null })).toBe(true)
}

async function ended({ status, ...ordered }: Ordered = {}): Promise<Task> {
  const task = await order(ordered)
  await end(task, status)
  return task
}

/** Advances time in steps, and lets all due work finish after each. */
async function pass(ms: number, step: number, idle: () => Promise<void>): Promise<void> {
  for (let gone = 0; gone < ms; gone += step) {
    clock.advance(step)
    await idle()
  }
}

const stateOf = async ({ task_id }: Task) => {
  const { attempts, delivered_at, last_status } = (await store.webhooks.ofTask(task_id)) ?? {}
  return { attempts, delivered_at, last_status }
}

describe('the event', () => {
  test('is sent once the task has ended: one POST with the data of a poll, the model, and the standard headers', async () => {
    const { got, guardedFetch } = receiver(() => 204)
    const { idle } = webhooks(guardedFetch)
    const task = await order()
    await idle()
    await pass(HOUR, 10 * MINUTE, idle)
    expect(got).toEqual([])

    await end(task)
    await idle()
    expect(got).toHaveLength(1)
    const [{ url, method, redirects, headers = {}, body = '' } = { url: '' }] = got
    expect({ url, method, redirects }).toEqual({ url: 'https://app.test/hook?key=hush', method: 'POST', redirects: 0 })
    const finish_time = Math.floor(clock.now() / 1000)
    expect(JSON.parse(body)).toEqual({
      type: 'task.succeeded',
      timestamp: new Date(finish_time * 1000).toISOString(),
      data: {
        task_id: task.task_id,
        model: 'sandbox/text-to-video',
        status: 'SUCCESS',
        progress: '100%',
        outputs: [`http://gateway.test/${task.task_id}?signed`],
        submit_time: task.submit_time,
        start_time: 0,
        finish_time,
        fail_code: '',
        fail_reason: '',
      },
    })
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': (await store.webhooks.ofTask(task.task_id))?.callback_id,
      'webhook-timestamp': String(finish_time),
    })
    expect(await stateOf(task)).toEqual({ attempts: 1, delivered_at: finish_time, last_status: 204 })
  })

  test('reports a failure', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const { idle } = webhooks(guardedFetch)
    await ended({ status: 'FAILURE' })
    await idle()
    const { type, data } = JSON.parse(got[0]?.body ?? '')
    expect({ type, data }).toMatchObject({
      type: 'task.failed',
      data: { status: 'FAILURE', fail_code: 'no_output', fail_reason: 'Nothing came.' },
    })
    expect(data).not.toHaveProperty('outputs')
  })

  test('is signed as the standard requires, with a secret of the token', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const { idle, secretOf } = webhooks(guardedFetch)
    await ended({ token_id: 'tok_a' })
    await ended({ token_id: 'tok_b' })
    await idle()
    for (const [index, token_id] of ['tok_a', 'tok_b'].entries()) {
      const { headers = {}, body } = got[index] ?? {}
      const secret = secretOf(token_id)
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
      expect(key).toHaveLength(32)
      const signature = createHmac('sha256', key).update(signed, 'utf8').digest('base64')
      expect(headers['webhook-signature']).toBe(`v1,${signature}`)
    }
    expect(secretOf('tok_a')).not.toBe(secretOf('tok_b'))
    expect(webhooks(guardedFetch, { master_secret: 'another' }).secretOf('tok_a')).not.toBe(secretOf('tok_a'))
  })

  test('is signed with a master secret that the store creates once', async () => {
    const master = await webhookMasterSecret(store.secrets)
    expect(master).toMatch(/^[A-Za-z0-9]{48}$/)
    expect(await webhookMasterSecret(store.secrets)).toBe(master)
  })
})

describe('links in the event', () => {
  /** The link that a whole gateway sends after an order with this `Host`. */
  async function linkSentBy(server: object): Promise<string> {
    const heard = Promise.withResolvers<{ data: { result_url: string } }>()
    const hook = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        heard.resolve((await request.json()) as { data: { result_url: string } })
        return new Response()
      },
    })
    const tasks = { ...DEFAULT_TASKS, poll_seconds: 0.2, callback_origins: [hook.url.origin] }
    const gateway = await startGateway({ server, tasks }, { clock: systemClock })
    running.push({ stop: () => gateway[Symbol.asyncDispose]() }, { stop: () => hook.stop(true) })
    const json = { model: 'sandbox/text-to-video', prompt: 'A kite.\n@sandbox quick=1', callback_url: hook.url.href }
    const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' }
    const url = 'http://chosen.example/v1/video/generations'
    await gateway.instance.fetch(new Request(url, { method: 'POST', headers, body: JSON.stringify(json) }))
    return new URL((await heard.promise).data.result_url).origin
  }

  test('lead to the configured address, else to the one at which the order was submitted', async () => {
    expect(await linkSentBy({ base_url: 'https://models.example.com/' })).toBe('https://models.example.com')
    expect(await linkSentBy({})).toBe('http://chosen.example')
  })
})

describe('attempts', () => {
  test('are repeated for a day at a failing receiver, then given up, always with the same id', async () => {
    const { got, guardedFetch } = receiver(() => 500)
    const { idle, log } = webhooks(guardedFetch)
    const task = await ended()
    const first_ms = clock.now()
    await idle()
    await pass(30 * HOUR, 5 * SECOND, idle)
    const at = got.map(({ at_ms }) => (at_ms - first_ms) / SECOND)
    const fixed = [0, 5, 35, 155, 755, 2_555, 6_155, 13_355]
    const daily = Array.from({ length: 10 }, (_, index) => 13_355 + 7_200 * (index + 1)).filter((s) => s < 86_400)
    expect(at).toEqual([...fixed, ...daily, 86_400])
    expect(new Set(got.map(({ headers }) => headers?.['webhook-id'])).size).toBe(1)
    expect(got.map(({ headers }) => Number(headers?.['webhook-timestamp']))).toEqual(
      at.map((seconds) => first_ms / SECOND + seconds),
    )
    expect(await stateOf(task)).toEqual({ attempts: at.length, delivered_at: null, last_status: 500 })
    expect(await store.webhooks.earliest()).toBe(null)
    log.flush()
    expect(logged).toContain('"event":"webhook given up"')
  }, 120_000)

  test('stop after a success', async () => {
    let answers = [503, 200]
    const { got, guardedFetch } = receiver(() => answers.shift() ?? 500)
    const { idle } = webhooks(guardedFetch)
    const task = await ended()
    await idle()
    await pass(5 * SECOND - 1, 5 * SECOND - 1, idle)
    expect(got).toHaveLength(1)
    await pass(1, 1, idle)
    expect(got).toHaveLength(2)
    expect(await stateOf(task)).toMatchObject({ attempts: 2, last_status: 200 })
    answers = []
    await pass(30 * HOUR, HOUR, idle)
    expect(got).toHaveLength(2)
  })

  test.each([
    [199, 'again'],
    [200, 'done'],
    [299, 'done'],
    [301, 'again'],
    [400, 'again'],
    [409, 'again'],
    [410, 'no more'],
    [411, 'again'],
  ])('treat the status %d as: %s', async (status, meaning) => {
    const { guardedFetch } = receiver(() => status)
    const { idle } = webhooks(guardedFetch)
    const task = await ended()
    await idle()
    const { attempts, delivered_at, last_status } = await stateOf(task)
    expect({ attempts, last_status }).toEqual({ attempts: 1, last_status: status })
    const is_due = (await store.webhooks.earliest()) !== null
    expect(is_due ? 'again' : delivered_at === null ? 'no more' : 'done').toBe(meaning)
  })

  test('do not follow a redirect', async () => {
    const asked: string[] = []
    const fetched = createGuardedFetch({
      clock,
      resolve: async () => ['93.184.216.34'],
      connect: async ({ url }) => {
        asked.push(url.href)
        return new Response('', { status: 302, headers: { location: 'https://elsewhere.test/' } })
      },
    })
    const { idle } = webhooks(fetched)
    const task = await ended()
    await idle()
    expect(asked).toEqual(['https://app.test/hook?key=hush'])
    expect(await stateOf(task)).toEqual({ attempts: 1, delivered_at: null, last_status: 302 })
  })

  test('do not call a private address, unless the operator allows its origin', async () => {
    let calls = 0
    const fetched = createGuardedFetch({
      clock,
      connect: async () => {
        calls++
        return new Response('', { status: 200 })
      },
    })
    const url = 'http://10.0.0.5:9000/hook'
    const refused = webhooks(fetched)
    const task = await ended({ url })
    await refused.idle()
    expect({ calls, ...(await stateOf(task)) }).toEqual({ calls: 0, attempts: 1, delivered_at: null, last_status: 0 })
    refused.log.flush()
    expect(logged).toContain('"error":"address_refused"')
    const allowed = webhooks(fetched, { private_origins: () => ['http://10.0.0.5:9000/'] })
    await pass(5 * SECOND, 5 * SECOND, allowed.idle)
    expect({ calls, ...(await stateOf(task)) }).toMatchObject({ calls: 1, last_status: 200 })
  })

  test('are aborted after 15 seconds without a response, and repeated', async () => {
    const { got, guardedFetch } = receiver(({ signal }) => hang(signal))
    const { idle, log } = webhooks(guardedFetch)
    const task = await ended()
    const done = idle()
    await until(() => got.length === 1)
    clock.advance(15 * SECOND - 1)
    await Bun.sleep(0)
    expect(await stateOf(task)).toMatchObject({ attempts: 0 })
    clock.advance(1)
    await done
    expect(await stateOf(task)).toEqual({ attempts: 1, delivered_at: null, last_status: 0 })
    expect(await store.webhooks.earliest()).toBe(clock.now() + 5 * SECOND)
    log.flush()
    expect(logged).toContain('"error":"timeout"')
  })

  test.each([
    ['120', 120],
    ['1', 5],
    ['999999', 3_600],
    ['-1', 5],
    ['tomorrow', 5],
  ])('with a retry-after of %j pause for %d seconds', async (text, seconds) => {
    const { guardedFetch } = receiver(async () => ({ status: 429, headers: new Headers({ 'retry-after': text }) }))
    const { idle } = webhooks(guardedFetch)
    await ended()
    await idle()
    expect(await store.webhooks.earliest()).toBe(clock.now() + seconds * SECOND)
  })

  test('do not read an endless response', async () => {
    let pulled = 0
    let canceled = false
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled++
          controller.enqueue(new Uint8Array(1024))
        },
        cancel() {
          canceled = true
        },
      },
      { highWaterMark: 0 },
    )
    const { guardedFetch } = receiver(async () => ({ status: 200, body }))
    const { idle } = webhooks(guardedFetch)
    await ended()
    await idle()
    expect({ pulled, canceled }).toEqual({ pulled: 0, canceled: true })
  })

  test('with an internal error count like others, and are logged', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const faulty = () => {
      throw new Error('a fault')
    }
    const { idle } = webhooks(guardedFetch, { describe: faulty })
    const task = await ended()
    await idle()
    expect(got).toEqual([])
    expect(await stateOf(task)).toMatchObject({ attempts: 1, delivered_at: null })
    expect(logged).toContain('a fault')
  })

  test('for a deleted task send nothing', async () => {
    const { got, guardedFetch } = receiver(() => 500)
    const { idle } = webhooks(guardedFetch)
    const task = await ended()
    await idle()
    expect(await store.tasks.remove(task.task_id, task.token_id, Math.floor(clock.now() / 1000))).toBe(true)
    await pass(HOUR, MINUTE, idle)
    expect(got).toHaveLength(1)
    expect(await store.webhooks.earliest()).toBe(null)
  })

  test('log neither path nor query', async () => {
    const { guardedFetch } = receiver(() =>
      Object.assign(new Error('https://app.test/hook?key=hush'), { code: 'ECONNRESET' }),
    )
    const { idle, log } = webhooks(guardedFetch)
    await ended()
    await idle()
    log.flush()
    expect(logged).toContain('"host":"app.test"')
    expect(logged).toContain('"error":"ECONNRESET"')
    expect(logged).not.toContain('hush')
    expect(logged).not.toContain('/hook')
  })
})

describe('a crash', () => {
  test('between the delivery and its record repeats the event with the same id once the lease expires', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const dying: Store['webhooks'] = { ...store.webhooks, save: () => Promise.reject(new Error('killed')) }
    const first = webhooks(guardedFetch, { store: { webhooks: dying, tasks: store.tasks } })
    const task = await ended()
    await first.idle()
    expect(got).toHaveLength(1)
    const second = webhooks(guardedFetch)
    await pass(60 * SECOND - 1, 60 * SECOND - 1, second.idle)
    expect(got).toHaveLength(1)
    await pass(1, 1, second.idle)
    expect(got).toHaveLength(2)
    expect(got[1]?.headers?.['webhook-id']).toBe(got[0]?.headers?.['webhook-id'])
    expect(await stateOf(task)).toMatchObject({ attempts: 1, last_status: 200 })
  })

  test('by a stop leaves running deliveries to the next start, uncounted', async () => {
    const { got, guardedFetch } = receiver(({ signal }) => hang(signal))
    const first = webhooks(guardedFetch)
    const task = await ended()
    first.start()
    await until(() => got.length === 1)
    await first.stop({ deadline_ms: 0 })
    expect(await stateOf(task)).toEqual({ attempts: 0, delivered_at: null, last_status: null })
    expect(await store.webhooks.earliest()).toBe(clock.now() + 60 * SECOND)
  })

  test('never makes two processes deliver the same event at the same time', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const [one, other] = [webhooks(guardedFetch), webhooks(guardedFetch)]
    for (let index = 0; index < 50; index++) await ended({ token_id: `tok_${index}` })
    await Promise.all([one.idle(), other.idle()])
    await pass(MINUTE, SECOND, () => Promise.all([one.idle(), other.idle()]).then(() => {}))
    expect(new Set(got.map(({ headers }) => headers?.['webhook-id'])).size).toBe(50)
    expect(got).toHaveLength(50)
  })
})

describe('timing', () => {
  test('the end of a task is delivered at once, without a timer', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const started = webhooks(guardedFetch)
    started.start()
    const task = await order()
    await started.idle()
    await end(task)
    await until(() => got.length === 1)
  })

  test('an end in another process is found within five seconds', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const { find } = store.tasks
    const started = webhooks(guardedFetch, { store: { webhooks: store.webhooks, tasks: { find } } })
    started.start()
    await started.idle()
    await ended()
    await Bun.sleep(0)
    expect(got).toEqual([])
    clock.advance(5 * SECOND)
    await until(() => got.length === 1)
  })

  test('a failing store ends no delivery', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    let fails = true
    const failing: Store['webhooks'] = {
      ...store.webhooks,
      claim: (claim) => (fails ? Promise.reject(new Error('away')) : store.webhooks.claim(claim)),
    }
    const started = webhooks(guardedFetch, { store: { webhooks: failing, tasks: store.tasks } })
    started.start()
    await ended()
    await until(() => logged.includes('webhook claim failed'))
    fails = false
    clock.advance(5 * SECOND)
    await until(() => got.length === 1)
  })
})

describe('fairness', () => {
  test('a receiver that times out for one token does not delay another token at the same host', async () => {
    const silent = 'https://shared.test/silent'
    const { got, guardedFetch } = receiver((request) => (request.url === silent ? hang(request.signal) : 200))
    const { start } = webhooks(guardedFetch)
    for (let index = 0; index < 20; index++) await ended({ url: silent, token_id: 'tok_a' })
    start()
    await until(() => got.length === 4)
    clock.advance(15 * SECOND) // silent from now on: one delivery at a time
    await until(async () => (await store.webhooks.earliest()) !== null && got.length === 4)
    clock.advance(5 * SECOND)
    await until(() => got.length === 5)

    const other = await ended({ url: 'https://shared.test/alive', token_id: 'tok_b' })
    await until(async () => (await stateOf(other)).delivered_at !== null)
    expect(got.filter(({ url }) => url !== silent)).toHaveLength(1)
  })

  test('the receivers of many tokens at one silent host use at most half of the slots', async () => {
    const { got, guardedFetch } = receiver(({ url, signal }) => (url.includes('dead') ? hang(signal) : 200))
    const { start } = webhooks(guardedFetch, { concurrency: 8 })
    for (let index = 0; index < 20; index++) await ended({ url: 'https://dead.test/', token_id: `tok_${index}` })
    await ended({ url: 'https://alive.test/', token_id: 'tok_b' })
    start()
    await until(() => got.some(({ url }) => url === 'https://alive.test/'))
    expect(got.filter(({ url }) => url.includes('dead'))).toHaveLength(4)
  })

  test('silent receivers do not delay the others, however many of their webhooks wait', async () => {
    const slow = 'https://dead.test/'
    const { got, guardedFetch } = receiver((request) => (request.url === slow ? hang(request.signal) : 200))
    const { start } = webhooks(guardedFetch, { concurrency: 8 })
    for (let index = 0; index < 100; index++) await ended({ url: slow })
    const last = await ended({ url: 'https://alive.test/', token_id: 'tok_b' })
    start()
    await until(() => got.some(({ url }) => url === 'https://alive.test/'))
    expect(got.filter(({ url }) => url === slow).length).toBeLessThanOrEqual(4)
    await until(async () => (await stateOf(last)).delivered_at !== null)

    // Once it has timed out it has one slot, and is still tried.
    clock.advance(15 * SECOND)
    await Bun.sleep(0)
    const before = got.length
    clock.advance(60 * SECOND)
    await until(() => got.length > before)
    expect(got.length - before).toBe(1)
  })

  test('a token with many receivers uses at most half of the slots', async () => {
    const { got, guardedFetch } = receiver(({ url, signal }) => (url.includes('dead') ? hang(signal) : 200))
    const { start } = webhooks(guardedFetch, { concurrency: 8 })
    for (let index = 0; index < 50; index++) await ended({ url: `https://dead-${index}.test/`, token_id: 'tok_a' })
    await ended({ url: 'https://alive.test/', token_id: 'tok_b' })
    start()
    await until(() => got.some(({ url }) => url === 'https://alive.test/'))
    expect(got.filter(({ url }) => url.includes('dead'))).toHaveLength(4)
  })

  test('many webhooks for one working receiver are all delivered, each once', async () => {
    const { got, guardedFetch } = receiver(() => 200)
    const { idle } = webhooks(guardedFetch, { concurrency: 8 })
    for (let index = 0; index < 200; index++) await ended()
    await idle()
    await pass(2 * MINUTE, SECOND, idle)
    expect(got).toHaveLength(200)
    expect(await store.webhooks.earliest()).toBe(null)
  })
})

/** Waits until the condition holds; a test that waits in vain fails by its timeout. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(0)
}
