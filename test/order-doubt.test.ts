/** An order in doubt: how long its response is awaited, when it is looked up, and how long it is sent again. */
import { describe, expect, test } from 'bun:test'
import { unknownOutcomeAlerts } from '../src/families/tasks/task-alerts.ts'
import type { ProviderSettings } from '../src/families/tasks/tasks.ts'
import type { AlertEventData } from '../src/observe/alerts/alerts.ts'
import type { VideoCall, VideoProvider } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Alert } from '../src/store/admin/alert-store.ts'
import type { Store } from '../src/store/store.ts'
import {
  CALLER,
  type EngineOptions,
  respondInTurn,
  type ScriptedVendor,
  scriptedVendor,
  type TaskEngine,
  taskEngine,
  unless,
} from './kit/task-engine.ts'

const broken = () => new GatewayError('upstream_cut', 'The connection broke.')
const rejection = () => new GatewayError('rate_limit_exceeded', 'Later.', { accepted: 'no' })
const hang = () => new Promise<never>(() => {})
const FIRST_BYTE = { acme: { first_byte_seconds: 300 } }

const endOf = async (gateway: TaskEngine, id: string) => {
  const { status, fail_code, fail_reason } = await gateway.read(id)
  return { status, fail_code, fail_reason }
}

describe('the response to an order', () => {
  /** 30 s beyond the timeout of the first byte are for connecting and for reading the rest. */
  test.each([
    [60, 89, 'QUEUED'],
    [60, 91, 'FAILURE'],
    [300, 329, 'QUEUED'],
    [300, 331, 'FAILURE'],
    [900, 929, 'QUEUED'],
    [900, 931, 'FAILURE'],
  ])('is awaited for first_byte_seconds %d: after %d s it is %s', async (first_byte_seconds, after, status) => {
    const acme = scriptedVendor({
      start: async () => {
        await new Promise<void>((resolve) => void gateway.clock.after(after * 1000, resolve))
        return { operation: 'op' }
      },
      status: async () => ({ status: 'QUEUED' }),
    })
    await using gateway = await taskEngine({ vendors: { acme }, providers: { acme: { first_byte_seconds } } })
    const id = await gateway.submit()
    await gateway.advance(after + 5)
    expect((await gateway.read(id)).status).toBe(status as 'QUEUED')
    expect(acme.calls).toHaveLength(1)
  })

  test.each([
    [358, 0],
    [362, 1],
  ])(
    'is not awaited by another process: %d s after a process died, its order was claimed %d times',
    async (...args) => {
      const [after, times] = args
      let is_dead = false
      const wrapStore = (store: Store): Store => ({ ...store, tasks: unless(() => is_dead, store.tasks) })
      const dead = scriptedVendor({ resubmit: 'safe', start: hang })
      await using gateway = await taskEngine({ vendors: { acme: dead }, providers: FIRST_BYTE, wrapStore })
      await gateway.submit()
      await gateway.advance(1)
      expect(dead.calls).toHaveLength(1)
      is_dead = true
      const alive = scriptedVendor({ resubmit: 'safe' })
      const { store, clock } = gateway
      await using other = await taskEngine({ store, clock, vendors: { acme: alive }, providers: FIRST_BYTE })
      await other.advance(after)
      expect(alive.calls).toHaveLength(times)
    },
  )

  test('to a repetition, and to a second part, is awaited as long', async () => {
    const calls: (() => Promise<{ operation: string }>)[] = [async () => Promise.reject(broken())]
    const slow = async () => {
      await new Promise<void>((resolve) => void gateway.clock.after(320_000, resolve))
      return { operation: 'op' }
    }
    const progress = respondInTurn<{ status: 'PROCEED' } | { status: 'SUCCESS'; outputs: { url: string }[] }>(
      { status: 'PROCEED' },
      { status: 'SUCCESS', outputs: [{ url: 'https://files.acme.test/a.mp4' }] },
    )
    const acme = scriptedVendor({
      resubmit: 'safe',
      start: () => (calls.shift() ?? slow)(),
      status: progress,
      proceed: slow,
    })
    await using gateway = await taskEngine({ vendors: { acme }, providers: FIRST_BYTE })
    const id = await gateway.submit()
    await gateway.advance(700)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'op' })
    expect([acme.calls.length, acme.proceeded.length]).toEqual([2, 1])
  })
})

describe('an order in doubt that can be looked up', () => {
  type Found = { operation: string } | undefined
  function vendorWith(find: (call: VideoCall) => Promise<Found>, more: Partial<VideoProvider> = {}): ScriptedVendor {
    const orderList: VideoProvider['orderList'] = {
      absent: 'unknown',
      async since(call) {
        const found = await find(call)
        return found ? [{ ...found, id: found.operation, created_at: 0, label: call.task_id }] : []
      },
    }
    return scriptedVendor({ start: respondInTurn<never>(broken()), orderList, ...more })
  }

  test('is found, and polled like any other', async () => {
    const keys: string[] = []
    const find = respondInTurn<Found>(broken(), undefined, { operation: 'found' })
    const acme = vendorWith(async (call) => {
      keys.push(call.idempotency_key)
      return find()
    })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    const id = await gateway.submit()
    await gateway.run(60)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'found', provider: 'acme' })
    expect([acme.calls.length, zenith.calls.length]).toEqual([1, 0])
    expect([...new Set(keys)]).toEqual(acme.calls.map(({ idempotency_key }) => idempotency_key))
  })

  test('is found before it is sent again, if it could be repeated', async () => {
    const acme = vendorWith(respondInTurn<Found>({ operation: 'found' }), { resubmit: 'safe' })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'found' })
    expect(acme.calls).toHaveLength(1)
  })

  test('is sent again with its key if it is not found and the provider honours keys', async () => {
    const acme = vendorWith(respondInTurn<Found>(undefined), {
      resubmit: 'safe',
      start: respondInTurn<{ operation: string }>(broken(), { operation: 'op' }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'op' })
    expect(acme.calls).toHaveLength(2)
  })

  test('is looked up for five minutes after its last possible arrival, and then given up', async () => {
    let lookups = 0
    const acme = vendorWith(async () => void lookups++ as undefined)
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(380)
    expect((await gateway.read(id)).status).toBe('SUBMITTED')
    await gateway.run(75)
    const end = await endOf(gateway, id)
    expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'submit_outcome_unknown' })
    expect(end.fail_reason).toContain('may have been charged')
    expect(lookups).toBeGreaterThan(5)
    expect(acme.calls).toHaveLength(1)
  })

  test('alerts the operator in the transaction of its end where its outcome stays unknown, and not otherwise', async () => {
    const make = (event: AlertEventData): Alert[] => [
      { alert_id: `alert_${event.type}`, channel: 'webhook', created_at: 0, due_ms: 0, body: JSON.stringify(event) },
    ]
    const alertsOf: EngineOptions['alertsOf'] = (task, ending) =>
      unknownOutcomeAlerts({ make, note() {} }, task, ending)
    await using well = await taskEngine({ alertsOf })
    await well.submit()
    await well.run(30)
    expect(await well.store.alerts.earliest()).toBeNull()
    await using gateway = await taskEngine({ vendors: { acme: vendorWith(async () => undefined) }, alertsOf })
    const id = await gateway.submit()
    await gateway.run(455)
    expect((await endOf(gateway, id)).fail_code).toBe('submit_outcome_unknown')
    const [alert] = await gateway.store.alerts.claim({ now_ms: 1, until_ms: 2, limit: 9 })
    expect(JSON.parse(alert?.body ?? '')).toMatchObject({
      type: 'task.outcome_unknown',
      data: { task_id: id, provider: 'acme', sent_at: expect.any(String) },
    })
  })

  test('is looked up until the deadline while lookups fail, and once more then', async () => {
    let is_back = false
    const acme = vendorWith(async () => (is_back ? { operation: 'found' } : Promise.reject(broken())))
    await using gateway = await taskEngine({ vendors: { acme }, settings: { deadline_minutes: 20 } })
    const [id, second] = [await gateway.submit(), await gateway.submit()]
    await gateway.run(1_195)
    expect((await gateway.read(id)).status).toBe('SUBMITTED')
    await gateway.tasks.cancel(second, CALLER)
    is_back = true
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: 'found' })
    expect(acme.calls).toHaveLength(2)
  })
})

test('an order in doubt whose repetition every target would refuse ends with that code, and states that it may have been charged', async () => {
  const rejection = new GatewayError('upstream_invalid_request', 'x'.repeat(600), { accepted: 'no' })
  const acme = scriptedVendor({ resubmit: 'safe', start: respondInTurn<never>(broken(), rejection) })
  await using gateway = await taskEngine({ vendors: { acme } })
  const id = await gateway.submit()
  await gateway.run(60)
  const end = await endOf(gateway, id)
  expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'invalid_input' })
  expect(end.fail_reason).toContain('may have been charged')
  expect(acme.calls).toHaveLength(2)
})

describe('the key of an order', () => {
  /** An order may take 90 s: it must arrive while the provider remembers the key. */
  test.each([
    [200, 2],
    [95, 1],
  ])('that is remembered for %d s allows %d attempts', async (key_seconds, times) => {
    const acme = scriptedVendor({
      resubmit: 'safe',
      key_seconds,
      start: respondInTurn<{ operation: string }>(new GatewayError('upstream_cut', 'Broken.', { retry_after: 10 }), {
        operation: 'op',
      }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(120)
    expect(acme.calls).toHaveLength(times)
    expect((await endOf(gateway, id)).fail_code).toBe(times === 2 ? '' : 'submit_outcome_unknown')
  })
})

describe('an order in doubt whose provider has changed meanwhile', () => {
  const ACME = { first_byte_seconds: 60, base_url: 'https://one.test/v1', key: 'key', options: { idempotent: true } }

  test.each([
    ['nothing', {}, 2, 'SUCCESS', ''],
    ['its concurrency', { concurrency: 9 }, 2, 'SUCCESS', ''],
    ['its address', { base_url: 'https://two.test/v1' }, 1, 'FAILURE', 'submit_outcome_unknown'],
    ['its account', { key: 'another' }, 1, 'FAILURE', 'submit_outcome_unknown'],
    ['its headers', { headers: { 'x-account': 'b' } }, 1, 'FAILURE', 'submit_outcome_unknown'],
    ['its kind', { kind: 'kling' }, 1, 'FAILURE', 'submit_outcome_unknown'],
    ['its preset', { preset: 'other' }, 1, 'FAILURE', 'submit_outcome_unknown'],
    ['its fields', { fields: { drop: ['seed'] } }, 1, 'FAILURE', 'submit_outcome_unknown'],
  ] as const)('in %s is sent again only if its key is known there', async (_, change, times, status, fail_code) => {
    const acme = scriptedVendor({
      resubmit: 'safe',
      start: respondInTurn<{ operation: string }>(new GatewayError('upstream_cut', 'Broken.', { retry_after: 10 }), {
        operation: 'op',
      }),
    })
    const providers: Record<string, ProviderSettings> = { acme: ACME }
    await using gateway = await taskEngine({ vendors: { acme }, providers })
    const id = await gateway.submit()
    await gateway.run(5)
    expect(acme.calls).toHaveLength(1)
    providers.acme = { ...ACME, ...change }
    await gateway.run(60)
    expect(acme.calls).toHaveLength(times)
    expect(await endOf(gateway, id)).toMatchObject({ status, fail_code })
  })
})

describe('at the deadline', () => {
  const atDeadline = async (vendor: Partial<VideoProvider>, run = 130) => {
    await using gateway = await taskEngine({
      vendors: { acme: scriptedVendor(vendor) },
      settings: { deadline_minutes: 2 },
    })
    const id = await gateway.submit()
    await gateway.run(run)
    return endOf(gateway, id)
  }

  test('an order in doubt states that it may have been charged', async () => {
    const end = await atDeadline({ resubmit: 'safe', start: respondInTurn<never>(broken()) })
    expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'submit_outcome_unknown' })
    expect(end.fail_reason).toContain('may have been charged')
  })

  test('an order that was certainly refused states that no provider accepted it', async () => {
    const end = await atDeadline({ start: respondInTurn<never>(rejection()) })
    expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'timeout' })
    expect(end.fail_reason).toBe('No provider accepted the order before the deadline.')
  })

  test('an order that was refused first and then left in doubt is not reported as unsent', async () => {
    const end = await atDeadline({ resubmit: 'safe', start: respondInTurn<never>(rejection(), rejection(), broken()) })
    expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'submit_outcome_unknown' })
    expect(end.fail_reason).toContain('may have been charged')
  })
})
