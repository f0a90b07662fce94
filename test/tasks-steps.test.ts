/** The steps of an accepted order: polls, files, deadlines, cancel requests, stops and crashes. */
import { describe, expect, test } from 'bun:test'
import { destinationOf } from '../src/families/tasks/steps/order.ts'
import type { TaskProgress } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Task } from '../src/spec/task.ts'
import type { Store } from '../src/store/store.ts'
import {
  CALLER,
  callerOf,
  memoryFiles,
  respondInTurn,
  scriptedVendor,
  settled,
  success,
  type TaskEngine,
  taskEngine,
} from './kit/task-engine.ts'

const broken = () => new GatewayError('upstream_cut', 'The connection broke.')
const hang = () => new Promise<never>(() => {})
const working: TaskProgress = { status: 'IN_PROGRESS' }
const failure = ({ status, fail_code }: Task) => `${status} ${fail_code}`
const errorOf = async (work: Promise<unknown>) => (await work.catch((error) => error)) as GatewayError
/** The files that the cleaner would remove now. */
const toRemove = async ({ store, clock }: TaskEngine) =>
  (await store.tasks.outputsToRemove(Math.floor(clock.now() / 1000), 10)).flatMap(({ outputs }) =>
    outputs.map(({ key }) => key),
  )
/** Long after the first poll, without news from the provider. */
const taken = async (gateway: TaskEngine) => {
  const id = await gateway.submit()
  await gateway.run(6)
  return id
}

describe('a poll', () => {
  const nonsense: [string, () => Promise<never>][] = [
    ['an error', () => Promise.reject(broken())],
    [
      'a 404',
      () => Promise.reject(new GatewayError('bad_upstream_response', 'no such task', { upstream_status: 404 })),
    ],
    ['a fault of the adapter', () => Promise.reject(new TypeError('x is undefined'))],
    ['nothing', () => Promise.resolve(undefined as never)],
    ['a text', () => Promise.resolve('oops' as never)],
    ['a success without a list', () => Promise.resolve({ status: 'SUCCESS' } as never)],
    ['a number of files that is none', () => Promise.resolve({ status: 'SUCCESS', outputs: { length: 0 } } as never)],
  ]
  test.each(nonsense)('that returns %s changes only the time of the next poll', async (_, answer) => {
    let asked = 0
    const status = async () => {
      asked++
      if (asked === 1) return { status: 'IN_PROGRESS' as const, progress: 50 }
      return asked < 8 ? answer() : success()
    }
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    const id = await taken(gateway)
    const before = await gateway.read(id)
    await gateway.run(60)
    const { failures, due_ms, fence, leased_by, ...rest } = await gateway.read(id)
    expect(before).toMatchObject(rest)
    expect(failures).toBeGreaterThan(2)
    expect(due_ms).toBeGreaterThan(gateway.clock.now())
    expect([leased_by, fence > before.fence]).toEqual(['', true])
    await gateway.run(200)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', failures: 0 })
  })

  test('that hangs is aborted after a minute and repeated', async () => {
    let asked = 0
    const status = async () => (asked++ === 0 ? hang() : success())
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    const id = await gateway.submit()
    await gateway.advance(60)
    expect(asked).toBe(1)
    await gateway.advance(15)
    expect(asked).toBe(2)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('is repeated at the time that the provider requests, after an error and after a success', async () => {
    const limited = new GatewayError('rate_limit_exceeded', 'slow down', { retry_after: 40 })
    const acme = scriptedVendor({
      status: respondInTurn<TaskProgress>(limited, { ...working, retry_after_seconds: 50 }, working),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    expect(acme.polls).toBe(1)
    await gateway.run(37)
    expect(acme.polls).toBe(1)
    await gateway.run(3)
    expect(acme.polls).toBe(2)
    for (let ask = 0; ask < 46; ask++) {
      await gateway.tasks.find(id, CALLER) // however often a client reads it
      await gateway.run(1)
    }
    expect(acme.polls).toBe(2)
    await gateway.run(6)
    expect(acme.polls).toBe(3)
  })

  test('with an unknown status keeps the state', async () => {
    const acme = scriptedVendor({
      status: respondInTurn<TaskProgress>(working, {}, { status: 'MYSTERY' } as never, { status: 'QUEUED' }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(30)
    expect(acme.polls).toBeGreaterThan(4)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS', progress: 30, failures: 0 })
  })

  test('that reports a failure ends the task, without URLs in the reason', async () => {
    const status = respondInTurn<TaskProgress>({
      status: 'FAILURE',
      fail_code: 'generation_failed',
      fail_reason: 'see https://api.acme.test/?key=sk-1',
    })
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    const id = await taken(gateway)
    expect(await gateway.read(id)).toMatchObject({
      status: 'FAILURE',
      fail_code: 'generation_failed',
      fail_reason: 'see (address)',
      progress: 100,
      due_ms: null,
    })
    expect(await gateway.store.usage.list({ limit: 5 })).toMatchObject([{ requests: 1, errors: 1 }])
  })

  test('that reports a failure with an unknown code becomes generation_failed', async () => {
    const status = respondInTurn<TaskProgress>({ status: 'FAILURE', fail_code: 'E1234' } as never)
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    expect(await gateway.read(await taken(gateway))).toMatchObject({
      fail_code: 'generation_failed',
      fail_reason: 'The provider gave no reason.',
    })
  })

  test('that reports a success without outputs fails the task', async () => {
    const status = respondInTurn<TaskProgress>({ status: 'SUCCESS', outputs: [] })
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    expect(failure(await gateway.read(await taken(gateway)))).toBe('FAILURE no_output')
  })
})

describe('the files', () => {
  const gone = () => new GatewayError('output_gone', 'The file is no longer there.')

  test('are stored as links before the first byte is copied, and copied one after the other', async () => {
    const rows: Task[] = []
    const files = memoryFiles({
      copy: async (key) => {
        rows.push(await gateway.read(key.split('/')[0] ?? ''))
        return undefined
      },
    })
    const status = respondInTurn(success('https://a.test/1', 'https://a.test/2'))
    await using gateway = await taskEngine({ files, vendors: { acme: scriptedVendor({ status }) } })
    const id = await taken(gateway)
    expect(rows[0]).toMatchObject({ status: 'IN_PROGRESS', progress: 99 })
    expect(rows.map(({ made, outputs }) => [made?.length, outputs.length])).toEqual([
      [2, 0],
      [1, 1],
    ])
    const task = await gateway.read(id)
    expect(task.status).toBe('SUCCESS')
    expect(task.outputs.map(({ key }) => key)).toEqual([`${id}/0.mp4`, `${id}/1.mp4`])
  })

  test('that take longer than one step are continued in the next step at once', async () => {
    let calls = 0
    const files = memoryFiles({ copy: async () => (++calls < 4 ? { done: false, bytes: calls } : undefined) })
    await using gateway = await taskEngine({ files })
    const id = await taken(gateway)
    expect(calls).toBe(4)
    expect(new Set(files.copied.map(({ key }) => key)).size).toBe(1)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('with an expired link are fetched by a fresh one', async () => {
    const files = memoryFiles({
      copy: async (_, { url }) => {
        if (url.endsWith('old')) throw gone()
        return undefined
      },
    })
    const acme = scriptedVendor({ status: respondInTurn(success('https://a.test/old'), success('https://a.test/new')) })
    await using gateway = await taskEngine({ files, vendors: { acme } })
    expect(await gateway.read(await taken(gateway))).toMatchObject({ status: 'SUCCESS' })
    expect(files.copied.map(({ source }) => source.url)).toEqual(['https://a.test/old', 'https://a.test/new'])
    expect(acme.polls).toBe(2)
  })

  test('need a fresh link only for the second when the first is copied', async () => {
    const files = memoryFiles({
      copy: async (_, { url }) => {
        if (url.endsWith('2-old')) throw gone()
        return undefined
      },
    })
    const status = respondInTurn(
      success('https://a.test/1', 'https://a.test/2-old'),
      success('https://a.test/1-new', 'https://a.test/2-new'),
    )
    await using gateway = await taskEngine({ files, vendors: { acme: scriptedVendor({ status }) } })
    expect(await gateway.read(await taken(gateway))).toMatchObject({ status: 'SUCCESS' })
    expect(files.copied.map(({ source }) => source.url.slice(15))).toEqual(['1', '2-old', '2-new'])
  })

  test.each([
    ['a 404, a 403 or a 410', gone()],
    ['a 401', new GatewayError('bad_upstream_response', 'HTTP 401', { upstream_status: 401 })],
    ['a 500', new GatewayError('bad_upstream_response', 'HTTP 500', { upstream_status: 500 })],
    ['a 503', new GatewayError('server_is_overloaded', 'HTTP 503', { upstream_status: 503, retry_after: 5 })],
    ['a cut connection or a wrong length', broken()],
    ['a time-out', new GatewayError('upstream_timeout', 'It kept silent.')],
    ['a full disk', Object.assign(new Error('no space left'), { code: 'ENOSPC' })],
    ['a bucket that is away', new Error('The bucket answered with HTTP 500.')],
  ])('whose download fails once with %s are copied at the second attempt', async (_, error) => {
    let calls = 0
    const files = memoryFiles({ copy: () => (calls++ === 0 ? Promise.reject(error) : Promise.resolve(undefined)) })
    await using gateway = await taskEngine({ files })
    const id = await gateway.submit()
    await gateway.run(12)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', fail_code: '' })
    expect(calls).toBe(2)
  })

  test('that are unavailable are retried until the copying deadline, ever less often, and not after it', async () => {
    let failing = true
    const files = memoryFiles({ copy: () => (failing ? Promise.reject(gone()) : Promise.resolve(undefined)) })
    // The deadline of the task itself is irrelevant here.
    const settings = { deadline_minutes: 1, copy_deadline_minutes: 120 }
    await using gateway = await taskEngine({ files, settings })
    const id = await gateway.submit()
    await gateway.run(6)
    const first = await gateway.read(id)
    expect(first).toMatchObject({ status: 'IN_PROGRESS', progress: 99, fail_code: '', finish_time: 0 })
    expect(first.deadline_at - first.submit_time).toBeWithin(7200, 7210)
    await gateway.run(7_180)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS', progress: 99, fail_code: '' })
    // 2 + 4 + ... + 256, then one every 300 s, each with a poll for fresh links; a jitter of 15 % either way.
    expect(files.copied.length).toBeWithin(27, 38)
    await gateway.run(25)
    const task = await gateway.read(id)
    expect(failure(task)).toBe('FAILURE output_expired')
    expect(task.finish_time).toBe(task.deadline_at)
    expect(task.fail_reason).toContain('The file is no longer there.')
    expect(task.operation).toEqual({ id })
    expect(task.made).toEqual([{ url: 'https://files.acme.test/a.mp4' }])

    failing = true
    const late = await gateway.submit()
    await gateway.run(20)
    failing = false
    gateway.clock.advance(86_400_000) // the gateway was down at the deadline: there is a last attempt
    await gateway.tasks.idle()
    expect(await gateway.read(late)).toMatchObject({ status: 'SUCCESS' })
  })

  test('that arrive too slowly are copied for ten minutes after the deadline, not longer', async () => {
    const files = memoryFiles({ copy: async () => ({ done: false, bytes: 1 }) })
    await using gateway = await taskEngine({ files, settings: { copy_deadline_minutes: 1 } })
    const pace = files.copy
    files.copy = (...given) => {
      gateway.clock.advance(50_000)
      return pace(...given)
    }
    const id = await gateway.submit()
    await gateway.run(6)
    const { finish_time, deadline_at, fail_code } = await gateway.read(id)
    expect([fail_code, finish_time - deadline_at >= 600, finish_time - deadline_at < 660]).toEqual([
      'output_expired',
      true,
      true,
    ])
  })

  test.each([
    ['the vendor keeps files for', { retention_seconds: 5_400 }, undefined, 5_400],
    ['the vendor says that this one expires in', {}, 7_200, 7_200],
    ['a vendor whose files are gone in a minute gets all the same', { retention_seconds: 60 }, undefined, 600],
    ['a clock of the vendor that is wrong leaves', {}, -5_000, 600],
    ['the setting allows, whatever the vendor keeps,', { retention_seconds: 864_000 }, 864_000, 86_400],
  ] as const)('are retried as long as %s (%p, %p): %d s', async (_, more, expires_in, seconds) => {
    const files = memoryFiles({ copy: () => Promise.reject(broken()) })
    const status = async (): Promise<TaskProgress> => ({
      ...(success() as TaskProgress & { status: 'SUCCESS' }),
      ...(expires_in !== undefined && { expires_at: Math.floor(gateway.clock.now() / 1000) + expires_in }),
    })
    await using gateway = await taskEngine({ files, vendors: { acme: scriptedVendor({ status, ...more }) } })
    const id = await gateway.submit()
    await gateway.run(6)
    const { deadline_at, submit_time } = await gateway.read(id)
    expect(deadline_at - submit_time).toBeWithin(seconds, seconds + 7)
  })

  test("that the gateway's own storage never accepts end the task with a fault of the gateway", async () => {
    const files = memoryFiles({ copy: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })) })
    await using gateway = await taskEngine({ files, settings: { copy_deadline_minutes: 5 } })
    const id = await gateway.submit()
    await gateway.run(310)
    const task = await gateway.read(id)
    expect(failure(task)).toBe('FAILURE internal_error')
    expect(task.made).toHaveLength(1)
    // A full disk is not the provider's fault: it is not polled for fresh links.
    expect(gateway.logged()).toContain('file could not be stored')
  })

  test('that stay broken are copied again until the copying deadline, and then have a fail_code of their own', async () => {
    let is_broken = true
    const invalid = () =>
      new GatewayError('bad_upstream_response', 'The file is broken: it has no end mark.', {
        fail_code: 'output_invalid',
      })
    const files = memoryFiles({ copy: async () => (is_broken ? Promise.reject(invalid()) : undefined) })
    await using gateway = await taskEngine({ files, settings: { copy_deadline_minutes: 5 } })
    const id = await gateway.submit()
    await gateway.run(290)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    const attempts = files.copied.length
    expect(attempts).toBeWithin(5, 12)
    await gateway.run(30)
    const task = await gateway.read(id)
    expect(failure(task)).toBe('FAILURE output_invalid')
    expect(task.fail_reason).toEndWith('The file is broken: it has no end mark.')
    // The operator may resume it, and a file that arrives whole in time is a success.
    expect(task.made).toHaveLength(1)
    const other = await gateway.submit()
    await gateway.run(20)
    is_broken = false
    await gateway.run(60)
    expect(await gateway.read(other)).toMatchObject({ status: 'SUCCESS' })
  })

  test('of a revoked success are given up after five attempts, not after one', async () => {
    const files = memoryFiles({ copy: () => Promise.reject(gone()) })
    const taken_back: TaskProgress = { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'Taken down.' }
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(success(), taken_back) })
    await using gateway = await taskEngine({ files, vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(20)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code: 'output_expired' })
    expect((await gateway.read(id)).fail_reason).toContain('Taken down.')
    expect(files.copied).toHaveLength(5)
  })

  test('whose fresh link does not work yet are retried with it, not with the expired one', async () => {
    let notifications = 0
    const files = memoryFiles({
      copy: async (_, { url }) => {
        if (url.endsWith('old')) throw gone()
        if (notifications++ === 0) throw broken()
        return undefined
      },
    })
    const status = respondInTurn(success('https://a.test/old'), success('https://a.test/new'))
    await using gateway = await taskEngine({ files, vendors: { acme: scriptedVendor({ status }) } })
    const id = await gateway.submit()
    await gateway.run(12)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
    expect(files.copied.map(({ source }) => source.url.slice(15))).toEqual(['old', 'new', 'new'])
  })

  test('that are being copied are not canceled, since they are paid for', async () => {
    let is_there = false
    const files = memoryFiles({ copy: async () => (is_there ? undefined : Promise.reject(broken())) })
    await using gateway = await taskEngine({ files, vendors: { acme: scriptedVendor({ cancel: async () => {} }) } })
    const id = await taken(gateway)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    is_there = true
    await gateway.run(60)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('that are refused end the task with the reason; copied files are removed a week later', async () => {
    const files = memoryFiles({
      copy: async (key) => {
        if (key.endsWith('1.mp4')) throw new GatewayError('output_refused', 'The file is larger than 10 bytes.')
        return undefined
      },
    })
    const status = respondInTurn(success('https://a.test/1', 'https://a.test/2'))
    await using gateway = await taskEngine({ files, vendors: { acme: scriptedVendor({ status }) } })
    const id = await taken(gateway)
    expect(await gateway.read(id)).toMatchObject({
      status: 'FAILURE',
      fail_code: 'output_expired',
      fail_reason: 'The file is larger than 10 bytes.',
    })
    // The copied files are retained for a week, for an operator who raises the limit and resumes the task.
    expect(await toRemove(gateway)).toEqual([])
    gateway.clock.advance(7 * 86_400_000 - 60_000)
    expect(await toRemove(gateway)).toEqual([])
    gateway.clock.advance(60_000)
    expect(await toRemove(gateway)).toEqual([`${id}/0.mp4`])
  })

  test('are fetched with the headers of their provider, and from the addresses that the operator allows', async () => {
    const acme = scriptedVendor({ outputHeaders: (url) => ({ 'x-key': `for ${new URL(url).host}` }) })
    const providers = { acme: { private_addresses: true, base_url: 'http://10.0.0.7:81/v1' } }
    await using gateway = await taskEngine({ vendors: { acme }, providers })
    await taken(gateway)
    expect(gateway.files.copied[0]?.source).toEqual({
      url: 'https://files.acme.test/a.mp4',
      headers: { 'x-key': 'for files.acme.test' },
      family_type: 'video/mp4',
      private_addresses: true,
      own_origin: 'http://10.0.0.7:81',
    })
  })

  test('whose bytes came with the response are stored at once, before those with links', async () => {
    const bytes = { content_type: 'video/webm', open: async () => new Blob(['12345']).stream() }
    const status = respondInTurn<TaskProgress>({ status: 'SUCCESS', outputs: [{ url: 'https://a.test/1' }, bytes] })
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    const id = await taken(gateway)
    expect((await gateway.read(id)).outputs).toEqual([
      { key: `${id}/0.webm`, content_type: 'video/webm', bytes: 5 },
      { key: `${id}/1.mp4`, content_type: 'video/mp4', bytes: 24 },
    ])
  })

  test('whose bytes cannot be stored now are polled again', async () => {
    let opened = 0
    const open = async () => {
      if (opened++ < 2) throw new Error('the renderer fell over')
      return new Blob(['12345']).stream()
    }
    const status = respondInTurn<TaskProgress>({ status: 'SUCCESS', outputs: [{ content_type: 'video/mp4', open }] })
    await using gateway = await taskEngine({ vendors: { acme: scriptedVendor({ status }) } })
    const id = await gateway.submit()
    await gateway.run(20)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', outputs: [{ bytes: 5 }] })
  })

  test('are passed through unchanged if the operator configured it; nothing is copied or removed', async () => {
    await using gateway = await taskEngine({ providers: { acme: { outputs: 'passthrough' } } })
    const task = await gateway.read(await taken(gateway))
    expect(task).toMatchObject({
      status: 'SUCCESS',
      outputs: [{ url: 'https://files.acme.test/a.mp4', content_type: 'video/mp4' }],
      outputs_expire_at: null,
    })
    expect(gateway.files.copied).toEqual([])
  })
})

describe('the deadline', () => {
  const settings = { deadline_minutes: 2 }

  test('ends a task that is in progress; the late outcome is recorded, and the result stays', async () => {
    let answer: TaskProgress = working
    const acme = scriptedVendor({ status: async () => answer })
    await using gateway = await taskEngine({ vendors: { acme }, settings })
    const id = await gateway.submit()
    await gateway.run(119)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    await gateway.run(2)
    const ended = await gateway.read(id)
    expect(failure(ended)).toBe('FAILURE timeout')
    expect(ended.finish_time).toBe(ended.deadline_at)
    await gateway.run(600)
    expect((await gateway.read(id)).late_outcome).toBeNull()
    answer = success()
    await gateway.run(300)
    const late = await gateway.read(id)
    expect(late.late_outcome).toMatchObject({ status: 'SUCCESS', detail: 'The provider finished with 1 file(s).' })
    expect(late).toMatchObject({
      status: 'FAILURE',
      fail_code: 'timeout',
      finish_time: ended.finish_time,
      due_ms: null,
      outputs: [],
    })
    expect(await gateway.store.usage.list({ limit: 5 })).toMatchObject([{ requests: 1, errors: 1 }])
  })

  test('stops the late polls once the outcome is known, also when an operator resumes the task', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(...Array(60).fill(working), success()) })
    await using gateway = await taskEngine({ vendors: { acme }, settings })
    const id = await gateway.submit()
    await gateway.run(125)
    expect((await gateway.read(id)).late_outcome).toBeNull()
    while ((await gateway.read(id)).late_outcome === null) await gateway.run(60)
    const asked = acme.polls
    const now = Math.floor(gateway.clock.now() / 1000)
    await gateway.store.tasks.resume(id, { due_ms: gateway.clock.now(), deadline_at: now + 3_600 })
    await gateway.run(900)
    expect(acme.polls).toBe(asked)
    expect(await gateway.read(id)).toMatchObject({ due_ms: null, fail_code: 'timeout' })
  })

  test('is followed by late polls for a day, rarely', async () => {
    const acme = scriptedVendor({ status: respondInTurn(working) })
    await using gateway = await taskEngine({ vendors: { acme }, settings })
    const id = await gateway.submit()
    await gateway.run(125)
    const before = acme.polls
    for (let hour = 0; hour < 26; hour++) {
      for (let minute = 0; minute < 60; minute++) {
        gateway.clock.advance(60_000)
        await gateway.tasks.idle()
      }
    }
    expect(acme.polls - before).toBeGreaterThan(100)
    expect(acme.polls - before).toBeLessThan(200)
    expect(await gateway.read(id)).toMatchObject({ due_ms: null, late_outcome: null })
  })

  test('polls a last time and delivers a finished result, however late the poll is', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working, success()) })
    await using gateway = await taskEngine({ vendors: { acme }, settings })
    const id = await taken(gateway)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    gateway.clock.advance(86_400_000) // the gateway was down all day
    await gateway.tasks.idle()
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('of copying starts when the task finishes, also when its bytes come inline and cannot be stored', async () => {
    let fails = true
    const open = async () => (fails ? Promise.reject(new Error('no')) : new Blob(['12345']).stream())
    const kept = { content_type: 'video/webm', open: async () => new Blob(['123']).stream() }
    const made: TaskProgress = {
      status: 'SUCCESS',
      outputs: [kept, { content_type: 'video/mp4', open }, { url: 'https://a.test/1' }],
    }
    await using gateway = await taskEngine({
      vendors: { acme: scriptedVendor({ status: respondInTurn(made) }) },
      settings,
    })
    const id = await gateway.submit()
    await gateway.run(300)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS', progress: 99 })
    fails = false
    await gateway.run(300)
    const task = await gateway.read(id)
    expect(task.status).toBe('SUCCESS')
    expect(task.outputs.map(({ key }) => key)).toEqual([`${id}/0.webm`, `${id}/1.mp4`, `${id}/2.mp4`])

    fails = true
    gateway.settings.copy_deadline_minutes = 10
    const second = await gateway.submit()
    await gateway.run(615)
    expect(failure(await gateway.read(second))).toBe('FAILURE output_expired')
  })

  test('of an order that was never sent leaves nothing to poll', async () => {
    const limited = new GatewayError('rate_limit_exceeded', 'busy', { accepted: 'no', retry_after: 9_999 })
    const acme = scriptedVendor({ start: respondInTurn<never>(limited) })
    await using gateway = await taskEngine({ vendors: { acme }, settings })
    const id = await gateway.submit()
    await gateway.run(121)
    expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code: 'timeout', due_ms: null })
  })
})

describe('a cancel request', () => {
  test('for a task that was not sent ends it at once', async () => {
    const acme = scriptedVendor({
      start: respondInTurn<never>(new GatewayError('rate_limit_exceeded', 'busy', { accepted: 'no', retry_after: 60 })),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    const noted = await gateway.tasks.cancel(id, CALLER)
    expect(noted).toMatchObject({ task_id: id, status: 'SUBMITTED' })
    expect(noted.cancel_asked_at).not.toBeNull()
    await gateway.tasks.idle()
    expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code: 'canceled', due_ms: null })
    expect(acme.calls).toHaveLength(1)
  })

  test('is passed to a provider that can cancel', async () => {
    const acme = scriptedVendor({ status: respondInTurn(working), cancel: async () => {} })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.tasks.idle()
    const task = await gateway.read(id)
    expect(task).toMatchObject({ status: 'FAILURE', fail_code: 'canceled', due_ms: null })
    expect(task.fail_reason).toContain('The provider has stopped it.')
    expect(acme.canceled).toBe(1)
  })

  test('that the provider refuses three times leaves the task to be polled to its end', async () => {
    let answer: TaskProgress = working
    const acme = scriptedVendor({ status: async () => answer, cancel: () => Promise.reject(broken()) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.run(60)
    expect(acme.canceled).toBe(3)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    answer = success()
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test.each([
    ['invalid_input', 'canceled'],
    ['generation_failed', 'canceled'],
    ['upstream_error', 'canceled'],
    ['content_policy_violation', 'content_policy_violation'],
  ] as const)(
    'that the provider agreed to before a crash is not reported as its %s but as %s',
    async (reported, code) => {
      let answer: TaskProgress = working
      const acme = scriptedVendor({ status: async () => answer, cancel: () => Promise.reject(broken()) })
      await using gateway = await taskEngine({ vendors: { acme } })
      const id = await taken(gateway)
      await gateway.tasks.cancel(id, CALLER)
      answer = { status: 'FAILURE', fail_code: reported, fail_reason: 'Request was stopped.' }
      await gateway.run(60)
      expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code: code })
      expect((await gateway.read(id)).fail_reason).toContain('Request was stopped.')
    },
  )

  const unknown = () => new GatewayError('bad_upstream_response', 'No such task.', { upstream_status: 404 })
  test('that the provider carried out before a crash, by deleting the task, ends it', async () => {
    const acme = scriptedVendor({ status: () => Promise.reject(unknown()), cancel: () => Promise.reject(unknown()) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.run(60)
    expect(failure(await gateway.read(id))).toBe('FAILURE canceled')
    expect(acme.canceled).toBe(1)
  })

  test.each([
    ['a cancel', { status: respondInTurn(working), cancel: () => Promise.reject(unknown()) }],
    ['a poll', { status: () => Promise.reject(unknown()), cancel: () => Promise.reject(broken()) }],
  ])('is not taken for done because of one 404 to %s', async (_, script) => {
    const acme = scriptedVendor(script)
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.run(60)
    expect((await gateway.read(id)).status).not.toBe('FAILURE')
  })

  test('ends the task, gives the reason and records the late outcome if the provider cannot cancel', async () => {
    let answer: TaskProgress = working
    const acme = scriptedVendor({ status: async () => answer })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.tasks.idle()
    const task = await gateway.read(id)
    expect(failure(task)).toBe('FAILURE canceled')
    expect(task.fail_reason).toContain('may still finish and be charged for')
    answer = success()
    await gateway.run(90)
    expect((await gateway.read(id)).late_outcome).toMatchObject({ status: 'SUCCESS' })
    expect(await gateway.store.usage.list({ limit: 5 })).toMatchObject([{ requests: 1, errors: 0 }])
  })

  test('during the order waits for its response: the order is not sent again', async () => {
    const answered = Promise.withResolvers<{ operation: string }>()
    const acme = scriptedVendor({
      start: () => answered.promise,
      status: respondInTurn(working),
      cancel: async () => {},
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.advance(1)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.advance(5)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUBMITTED' })
    answered.resolve({ operation: 'op' })
    await gateway.advance(6)
    expect(failure(await gateway.read(id))).toBe('FAILURE canceled')
    expect([acme.calls.length, acme.canceled]).toEqual([1, 1])
  })

  test('has no effect on an ended task, nor on one of another token', async () => {
    await using gateway = await taskEngine()
    const id = await gateway.submit()
    expect(await errorOf(gateway.tasks.cancel(id, callerOf('tok_two')))).toMatchObject({ code: 'task_not_exist' })
    await gateway.run(10)
    expect(await gateway.tasks.cancel(id, CALLER)).toMatchObject({ status: 'SUCCESS', cancel_asked_at: null })
  })
})

describe('a provider that was removed from the configuration', () => {
  test('keeps its task waiting, is logged once, and continues when it returns', async () => {
    const acme = scriptedVendor({ status: respondInTurn(working) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    const provider = gateway.providers.get('acme')
    gateway.providers.delete('acme')
    await gateway.run(200)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    expect(gateway.logged().match(/tasks wait for a provider/g)).toHaveLength(1)
    if (provider) gateway.providers.set('acme', { ...provider, video: scriptedVendor() })
    await gateway.run(75)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('ends its task at the deadline if nothing replaces it', async () => {
    const acme = scriptedVendor({ status: respondInTurn(working) })
    await using gateway = await taskEngine({ vendors: { acme }, settings: { deadline_minutes: 3 } })
    const id = await taken(gateway)
    gateway.providers.delete('acme')
    await gateway.run(181)
    expect(failure(await gateway.read(id))).toBe('FAILURE timeout')
  })

  test('is skipped for the next target if it has no order yet', async () => {
    const acme = scriptedVendor({
      start: respondInTurn<never>(new GatewayError('rate_limit_exceeded', 'busy', { accepted: 'no', retry_after: 20 })),
    })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    gateway.setTargets(['acme'])
    const id = await taken(gateway)
    gateway.providers.delete('acme')
    gateway.setTargets(['zenith'])
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', provider: 'zenith' })
  })

  test('makes the model unavailable after some attempts if no other target serves it', async () => {
    await using gateway = await taskEngine()
    const id = await gateway.submit()
    gateway.setTargets([])
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'NOT_START' })
    await gateway.run(30)
    expect(failure(await gateway.read(id))).toBe('FAILURE model_unavailable')
  })
})

describe('the worker', () => {
  test("runs no more concurrent steps than the provider's concurrency", async () => {
    const open: (() => void)[] = []
    const acme = scriptedVendor({
      start: ({ task_id }) => new Promise((resolve) => void open.push(() => resolve({ operation: task_id }))),
      status: respondInTurn(working),
    })
    await using gateway = await taskEngine({
      vendors: { acme },
      providers: { acme: { concurrency: 3 } },
      settings: { concurrency: 100 },
    })
    for (let one = 0; one < 8; one++) await gateway.submit()
    await gateway.advance(5)
    expect(acme.calls).toHaveLength(3)
    open.shift()?.()
    await gateway.advance(1)
    expect(acme.calls).toHaveLength(4)
    for (let round = 0; round < 8; round++) {
      for (const release of open.splice(0)) release()
      await gateway.advance(1)
    }
    expect(acme.calls).toHaveLength(8)
  })

  test('does not let a hanging provider block another one', async () => {
    const acme = scriptedVendor({ start: hang })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith }, settings: { concurrency: 2 } })
    gateway.setTargets(['acme'])
    for (let one = 0; one < 5; one++) await gateway.submit()
    await gateway.advance(1)
    gateway.setTargets(['zenith'])
    const id = await gateway.submit()
    await gateway.advance(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('survives an internal error: the task is logged and retried', async () => {
    let faults = 3
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        inputs: (id) => (faults-- > 0 ? Promise.reject(new Error('a bug')) : store.tasks.inputs(id)),
      },
    })
    await using gateway = await taskEngine({ wrapStore })
    const id = await gateway.submit()
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
    expect(gateway.logged().match(/step failed/g)).toHaveLength(3)
  })

  test('ends a task after eight consecutive faults if nothing can have been paid', async () => {
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: { ...store.tasks, inputs: () => Promise.reject(new Error('a bug with a secret')) },
    })
    await using gateway = await taskEngine({ wrapStore })
    const id = await gateway.submit()
    await gateway.run(300)
    const task = await gateway.read(id)
    expect(failure(task)).toBe('FAILURE internal_error')
    expect(task.fail_reason).not.toContain('secret')
  })

  test('does not end a task by its own faults once it may be paid for', async () => {
    let is_ill = true
    const acme = scriptedVendor({ status: respondInTurn(success()) })
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        save: (task, change) =>
          is_ill && change.made ? Promise.reject(new Error('a bug')) : store.tasks.save(task, change),
      },
    })
    await using gateway = await taskEngine({ vendors: { acme }, wrapStore })
    const id = await gateway.submit()
    await gateway.run(600)
    expect((await gateway.read(id)).failures).toBeGreaterThan(9)
    is_ill = false
    await gateway.run(75)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('continues after the store was unavailable', async () => {
    let is_away = false
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: { ...store.tasks, queues: () => (is_away ? Promise.reject(new Error('no disk')) : store.tasks.queues()) },
    })
    await using gateway = await taskEngine({ wrapStore })
    is_away = true
    const id = await gateway.submit()
    await gateway.advance(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'NOT_START' })
    is_away = false
    await gateway.advance(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
  })

  test('claims nothing after a stop, lets steps finish, and aborts those that do not', async () => {
    const answered = Promise.withResolvers<{ operation: string }>()
    const acme = scriptedVendor({ start: () => answered.promise })
    const zenith = scriptedVendor({ start: hang })
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    gateway.setTargets(['acme'])
    const first = await gateway.submit()
    await gateway.advance(1)
    gateway.setTargets(['zenith'])
    const second = await gateway.submit()
    await gateway.advance(1)
    const stopping = gateway.tasks.stop({ deadline_ms: 5_000 })
    const third = await gateway.submit()
    answered.resolve({ operation: 'op' })
    await settled()
    gateway.clock.advance(5_000)
    await stopping
    expect(await gateway.read(first)).toMatchObject({ status: 'QUEUED', operation: 'op', leased_by: '' })
    const cut = await gateway.read(second)
    expect(cut).toMatchObject({ status: 'SUBMITTED', operation: null })
    // The next process finds it in doubt, without waiting for the lease of an order.
    expect(cut.sent_at).not.toBeNull()
    expect(cut).toMatchObject({ leased_by: '', due_ms: gateway.clock.now() })
    expect(await gateway.read(third)).toMatchObject({ status: 'NOT_START' })
  })

  test('resets an order that a stop aborted before it was sent', async () => {
    const acme = scriptedVendor({
      start: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () =>
            reject(new GatewayError('upstream_unreachable', 'cut', { accepted: 'no' })),
          )
        }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.advance(1)
    await gateway.tasks.stop({ deadline_ms: 0 })
    expect(acme.calls).toHaveLength(1)
    expect(await gateway.read(id)).toMatchObject({
      status: 'SUBMITTED',
      sent_at: null,
      leased_by: '',
      failures: 0,
      tried: [],
    })
  })

  test('releases a poll that a stop aborted at once', async () => {
    const acme = scriptedVendor({ status: hang })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.advance(6)
    expect(acme.polls).toBe(1)
    await gateway.tasks.stop({ deadline_ms: 0 })
    expect(await gateway.read(id)).toMatchObject({
      status: 'QUEUED',
      leased_by: '',
      failures: 0,
      due_ms: gateway.clock.now(),
    })
  })

  test('claims the tasks of a dead process once their leases expire', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    const now_ms = gateway.clock.now() + 60_000
    const dead = await gateway.store.tasks.claim({
      by: 'dead',
      provider: 'acme',
      now_ms,
      until_ms: now_ms + 30_000,
      limit: 1,
    })
    expect(dead).toHaveLength(1)
    const before = acme.polls
    await gateway.run(89)
    expect(acme.polls).toBe(before)
    await gateway.run(3)
    expect(acme.polls).toBe(before + 1)
    expect(await gateway.store.tasks.save({ task_id: id, fence: dead[0]?.fence ?? 0 }, { status: 'FAILURE' })).toBe(
      false,
    )
  })

  test.each([
    ['unsafe', 'FAILURE submit_outcome_unknown', 0, 'this version'],
    ['safe', 'SUCCESS ', 1, 'this version'],
    ['safe', 'FAILURE submit_outcome_unknown', 0, 'a version that did not store where to'],
  ] as const)(
    'claims a task whose process died before the order was sent (%s): %s, sent again %d times, after %s',
    async (resubmit, end, calls, version) => {
      const acme = scriptedVendor({ resubmit })
      const zenith = scriptedVendor()
      const gateway = await taskEngine({ vendors: { acme, zenith } })
      await gateway.tasks.stop({ deadline_ms: 0 })
      const id = await gateway.submit()
      const lease = { by: 'dead', now_ms: gateway.clock.now(), until_ms: gateway.clock.now() + 90_000, limit: 1 }
      const [first] = await gateway.store.tasks.claim({ ...lease, provider: '' })
      if (!first) throw new Error('nothing to claim')
      const chosen = { status: 'SUBMITTED', provider: 'acme', upstream_model: 'film-1', due_ms: lease.now_ms } as const
      await gateway.store.tasks.save(first, chosen)
      const [second] = await gateway.store.tasks.claim({ ...lease, provider: 'acme' })
      if (!second) throw new Error('nothing to claim')
      const is_known = version === 'this version'
      const sent_to = is_known ? destinationOf({ task: second, providerSettings: () => ({}) }) : null
      await gateway.store.tasks.save(second, { sent_at: Math.floor(lease.now_ms / 1000), sent_to, keep_lease: true })
      await using next = await taskEngine({ vendors: { acme, zenith }, store: gateway.store, clock: gateway.clock })
      await next.run(89)
      expect(acme.calls).toHaveLength(0)
      expect(await next.read(id)).toMatchObject({ status: 'SUBMITTED' })
      await next.run(12)
      expect(failure(await next.read(id))).toBe(end)
      expect([acme.calls.length, zenith.calls.length]).toEqual([calls, 0])
    },
  )

  test('wakes by itself for each due step, and for nothing else', async () => {
    const times: number[] = []
    const acme = scriptedVendor({
      status: async () => {
        times.push(gateway.clock.now())
        return times.length < 4 ? working : success()
      },
    })
    let looks = 0
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        queues: () => {
          looks++
          return store.tasks.queues()
        },
      },
    })
    await using gateway = await taskEngine({ vendors: { acme }, wrapStore })
    const start = gateway.clock.now()
    const id = await gateway.submit()
    await settled()
    await gateway.advance(0.5)
    expect(acme.calls).toHaveLength(1)
    await gateway.advance(25)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS' })
    const pauses = times.map((time, index) => time - (times[index - 1] ?? start))
    for (const pause of pauses) expect(pause).toBeWithin(3_000, 5_601)
    looks = 0
    await gateway.advance(20)
    expect(looks).toBeWithin(19, 22)
  })

  test('advances the tasks that clients read in one batch a second', async () => {
    const batches: number[] = []
    const wrapStore = (store: Store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        advancePolling: (ids, now_ms) => {
          batches.push(now_ms)
          return store.tasks.advancePolling(ids, now_ms)
        },
      },
    })
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working) })
    await using gateway = await taskEngine({ vendors: { acme }, wrapStore })
    const ids = await Promise.all(Array.from({ length: 20 }, () => gateway.submit()))
    await gateway.run(700)
    for (let pace = 0; pace < 40; pace++) {
      for (const id of ids) await gateway.tasks.find(id, CALLER)
      await gateway.run(0.25)
    }
    expect(batches.length).toBeGreaterThan(3)
    for (const [index, at] of batches.entries()) {
      expect(at - (batches[index - 1] ?? 0)).toBeGreaterThanOrEqual(1_000)
    }
  })

  test('does not poll before the time that the provider requested, however old the task and many the clients', async () => {
    let answer: TaskProgress = working
    const acme = scriptedVendor({ status: async () => answer })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(700)
    answer = { ...working, retry_after_seconds: 60 }
    await gateway.run(20)
    const { due_ms } = await gateway.read(id)
    const asked = acme.polls
    while (gateway.clock.now() < (due_ms ?? 0) - 2_000) {
      await gateway.tasks.find(id, CALLER)
      await gateway.run(1)
      expect(acme.polls).toBe(asked)
    }
    await gateway.run(4)
    expect(acme.polls).toBe(asked + 1)
  })

  test('polls an old task sooner when a client reads it', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(700)
    const before = acme.polls
    await gateway.run(60)
    expect(acme.polls - before).toBeWithin(3, 6)
    const quiet = acme.polls
    for (let second = 0; second < 60; second++) {
      await gateway.tasks.find(id, CALLER)
      await gateway.run(1)
    }
    expect(acme.polls - quiet).toBeWithin(10, 21)
  })
})

describe('a client', () => {
  test('reads only its own tasks', async () => {
    await using gateway = await taskEngine()
    const id = await gateway.submit()
    expect(await gateway.tasks.find(id, CALLER)).toMatchObject({ task_id: id })
    expect(await errorOf(gateway.tasks.find(id, callerOf('tok_two')))).toMatchObject({ code: 'task_not_exist' })
    expect(await errorOf(gateway.tasks.find('task_none', CALLER))).toMatchObject({ code: 'task_not_exist' })
    expect(await gateway.tasks.findAny(id)).toMatchObject({ task_id: id })
    expect(await gateway.tasks.findAny('task_none')).toBeUndefined()
  })

  test('lists its own tasks, newest first, page by page', async () => {
    await using gateway = await taskEngine()
    const ids: string[] = []
    for (let one = 0; one < 5; one++) {
      gateway.clock.advance(1_000)
      ids.push(await gateway.submit())
    }
    await gateway.submit({}, { caller: callerOf('tok_two') })
    const first = await gateway.tasks.list(CALLER, { limit: 3 })
    expect([first.tasks.map(({ task_id }) => task_id), first.has_more]).toEqual([ids.toReversed().slice(0, 3), true])
    const rest = await gateway.tasks.list(CALLER, { limit: 3, after: first.tasks[2]?.task_id ?? '' })
    expect([rest.tasks.map(({ task_id }) => task_id), rest.has_more]).toEqual([ids.toReversed().slice(3), false])
    const exact = await gateway.tasks.list(CALLER, { limit: 5 })
    expect(exact.has_more).toBe(false)
  })

  test('deletes an ended task together with its files', async () => {
    await using gateway = await taskEngine()
    const id = await gateway.submit()
    expect(await errorOf(gateway.tasks.remove(id, CALLER))).toMatchObject({ code: 'task_not_ended' })
    await gateway.run(10)
    expect(await errorOf(gateway.tasks.remove(id, callerOf('tok_two')))).toMatchObject({ code: 'task_not_exist' })
    await gateway.tasks.remove(id, CALLER)
    expect(await errorOf(gateway.tasks.find(id, CALLER))).toMatchObject({ code: 'task_not_exist' })
    expect(await errorOf(gateway.tasks.remove(id, CALLER))).toMatchObject({ code: 'task_not_exist' })
    expect(await toRemove(gateway)).toEqual([`${id}/0.mp4`])
  })

  test('gets a retry time for an unfinished task, and none for an ended one', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working, working, success()) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    expect(gateway.tasks.retryAfter(await gateway.read(id))).toBeWithin(1, 6)
    await gateway.run(30)
    expect(gateway.tasks.retryAfter(await gateway.read(id))).toBe(0)
  })

  test('that waits gets the task at the change, and not before', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working, working, success()) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    const seen = await gateway.read(id)
    let answer: Task | undefined
    const waiting = gateway.tasks.wait(seen, { seconds: 25, signal: new AbortController().signal, caller: CALLER })
    waiting.then((task) => (answer = task))
    await gateway.run(2)
    expect(answer).toBeUndefined()
    await gateway.run(12)
    expect(answer?.progress).toBeGreaterThan(seen.progress)
  })

  test('that waits gets the task when only the progress has changed', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working, { ...working, progress: 50 }) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const seen = await gateway.read(await taken(gateway))
    const answer = gateway.tasks.wait(seen, { seconds: 25, signal: new AbortController().signal, caller: CALLER })
    await gateway.run(8)
    const waited = Math.floor(gateway.clock.now() / 1000)
    expect(await Promise.race([answer, settled()])).toMatchObject({ status: 'IN_PROGRESS', progress: 64 })
    expect(waited).toBeLessThan(seen.submit_time + 25)
  })

  test('that waits gets the task when the time is up, after a minute at most, and at once if it has ended', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await taken(gateway)
    const seen = await gateway.read(id)
    const { signal } = new AbortController()
    const answers: string[] = []
    gateway.tasks.wait(seen, { seconds: 0, signal, caller: CALLER }).then(() => answers.push('none'))
    gateway.tasks.wait(seen, { seconds: 5, signal, caller: CALLER }).then(() => answers.push('five'))
    gateway.tasks.wait(seen, { seconds: 900, signal, caller: CALLER }).then(() => answers.push('sixty'))
    await gateway.run(4)
    expect(answers).toEqual(['none'])
    await gateway.run(2)
    expect(answers).toEqual(['none', 'five'])
    await gateway.run(53)
    expect(answers).toEqual(['none', 'five'])
    await gateway.run(2)
    expect(answers).toEqual(['none', 'five', 'sixty'])
    await gateway.tasks.cancel(id, CALLER)
    await gateway.tasks.idle()
    const ended = await gateway.read(id)
    expect(await gateway.tasks.wait(ended, { seconds: 30, signal, caller: CALLER })).toMatchObject({
      status: 'FAILURE',
    })
  })

  test('that waits is notified of a change by another process', async () => {
    const wrapStore = (store: Store): Store => ({ ...store, tasks: { ...store.tasks, watch: () => () => {} } })
    await using gateway = await taskEngine({ wrapStore })
    await gateway.tasks.stop({ deadline_ms: 0 }) // this one takes no steps
    const id = await gateway.submit()
    const seen = await gateway.read(id)
    const { signal } = new AbortController()
    await using other = await taskEngine({ store: gateway.store, clock: gateway.clock, wrapStore })
    let answer: Task | undefined
    other.tasks.wait(seen, { seconds: 25, signal, caller: CALLER }).then((task) => (answer = task))
    await other.advance(2)
    expect(answer?.status).toBe('SUBMITTED')
  })

  test('that disconnects stops waiting; a stop ends all waits', async () => {
    const acme = scriptedVendor({ status: respondInTurn<TaskProgress>(working) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const seen = await gateway.read(await taken(gateway))
    const control = new AbortController()
    const left = gateway.tasks.wait(seen, { seconds: 25, signal: control.signal, caller: CALLER })
    const kept = gateway.tasks.wait(seen, { seconds: 25, signal: new AbortController().signal, caller: CALLER })
    await settled()
    control.abort(new Error('gone'))
    expect(await errorOf(left)).toMatchObject({ message: 'gone' })
    await gateway.tasks.stop({ deadline_ms: 0 })
    expect(await kept).toMatchObject({ task_id: seen.task_id })
  })

  test('and the operator get the age of the oldest task and the lag of the steps', async () => {
    await using gateway = await taskEngine()
    expect(await gateway.tasks.health()).toEqual({ unfinished: 0, oldest_seconds: 0, lag_seconds: 0 })
    await gateway.tasks.stop({ deadline_ms: 0 })
    await gateway.submit()
    gateway.clock.advance(30_000)
    await gateway.submit()
    gateway.clock.advance(12_000)
    expect(await gateway.tasks.health()).toEqual({ unfinished: 2, oldest_seconds: 42, lag_seconds: 42 })
  })
})
