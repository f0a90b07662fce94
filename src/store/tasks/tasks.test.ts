/** The store's contract for tasks, tested on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ENGINES } from '../../../test/kit/engines.ts'
import { entryOf } from '../../../test/kit/ledger.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import { TASK_STATUSES, type Task } from '../../spec/task.ts'
import type { UsageRow } from '../../spec/token.ts'
import type { NewTask, Store, TaskChange } from '../store.ts'

function task(name: string, change: Partial<Task> = {}): Task {
  return blankTask({
    task_id: `task_${name}`,
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'sandbox/text-to-video',
    submit_time: 1_000,
    request: { prompt: 'a boat' },
    base_url: 'http://gatehouse.test',
    deadline_at: 4_600,
    due_ms: 10_000,
    ...change,
  })
}

const USAGE: UsageRow = {
  token_id: 'tok_a',
  model: 'sandbox/text-to-video',
  hour: 0,
  requests: 1,
  errors: 0,
  input_tokens: 0,
  output_tokens: 0,
  estimated: 0,
}
const SUCCESS = {
  status: 'SUCCESS',
  progress: 100,
  finish_time: 1_200,
  due_ms: null,
  entry: { ...entryOf(USAGE), entry_id: 'task_a:1', kind: 'task', call_id: 'task_a' },
} satisfies TaskChange
const FAILURE = { status: 'FAILURE', finish_time: 1_300, fail_code: 'timeout', due_ms: null } satisfies TaskChange

const ids = (tasks: Task[]) => tasks.map(({ task_id }) => task_id.slice('task_'.length))

async function addAll(store: Store, ...tasks: Task[]): Promise<void> {
  for (const each of tasks) await store.tasks.add({ task: each })
}

const claim = (store: Store, change: Partial<Parameters<Store['tasks']['claim']>[0]> = {}) =>
  store.tasks.claim({ by: 'worker', provider: '', now_ms: 20_000, until_ms: 50_000, limit: 10, ...change })

/** Adds a task and claims it. */
async function inHand(store: Store, order: NewTask): Promise<Task> {
  await store.tasks.add(order)
  const [taken] = await claim(store, { provider: order.task.provider })
  if (!taken) throw new Error('the task was not due')
  return taken
}

const callbackOf = (name: string) => ({ callback_id: `cb_${name}`, url: `https://client.test/${name}` })
const keyOf = (key: string, change = {}) => ({ key, body_hash: 'hash', expires_at: 90_000, ...change })

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    describe('adding and reading', () => {
      test('refuse a task where as many unfinished ones are equal in the columns of a limit, however many are added at once', async () => {
        const { tasks } = await engine.open()
        const of = (task_id: string, change: Partial<Task>) => ({ ...task(task_id), project_id: 'proj_p', ...change })
        const limits = [{ name: 'end user "ann"', columns: ['project_id', 'end_user'] as const, limit: 2 }]
        const added = await Promise.allSettled(
          ['a', 'b', 'c', 'd'].map((id) => tasks.add({ task: of(id, { end_user: 'ann' }), limits })),
        )
        expect(added.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
        const refused = tasks.add({ task: of('e', { end_user: 'ann' }), limits, idempotency: keyOf('again') })
        await expect(refused).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
        expect(await tasks.findByKey(task('e').token_id, 'again', 0)).toBeUndefined()
        expect((await tasks.add({ task: of('f', { end_user: 'bob' }), limits })).outcome).toBe('added')
      })

      test('returns a stored task with every field', async () => {
        const { tasks } = await engine.open()
        const full = task('full', {
          status: 'IN_PROGRESS',
          progress: 40,
          start_time: 1_010,
          finish_time: 1_020,
          fail_code: 'timeout',
          fail_reason: 'ünïcode 🗝 "quoted"',
          request: { prompt: 'a\u0000b 🎬', n: 2, deep: [{ a: null }] },
          provider: 'p',
          upstream_model: 'vendor/m',
          tried: ['q/m'],
          sent_at: 1_005,
          operation: { id: 'op\u0000', list: [1, 2.5, false, null] },
          made: [{ url: 'https://vendor.test/a?b=c', content_type: 'video/mp4' }],
          outputs: [{ key: 'k', content_type: 'video/mp4', bytes: 5_000_000_000 }],
          outputs_expire_at: 9_000_000_000,
          cancel_asked_at: 1_011,
          late_outcome: { status: 'SUCCESS', at: 1_030, detail: 'd' },
          failures: 3,
          due_ms: 1_795_000_000_000,
          leased_by: 'w',
          fence: 7,
        })
        const plain = task('plain', { due_ms: null })
        expect(await tasks.add({ task: full })).toEqual({ outcome: 'added', task: full })
        await tasks.add({ task: plain })
        expect(await tasks.find('task_full')).toEqual(full)
        expect(await tasks.find('task_plain', 'tok_a')).toEqual(plain)
      })

      test('stores any JSON as the operation, also a string or false', async () => {
        const { tasks } = await engine.open()
        for (const [index, operation] of (['text', false, 0, [], {}, null] as const).entries()) {
          await tasks.add({ task: task(`${index}`, { operation: operation as Task['operation'] }) })
          expect((await tasks.find(`task_${index}`))?.operation).toEqual(operation as Task['operation'])
        }
      })

      test('returns undefined for a missing task, and for one of another token', async () => {
        const { tasks } = await engine.open()
        await tasks.add({ task: task('a') })
        expect(await tasks.find('task_none')).toBeUndefined()
        expect(await tasks.find('task_a', 'tok_b')).toBeUndefined()
        expect(await tasks.inputs('task_a')).toBeUndefined()
      })

      test('stores inputs completely, also large ones', async () => {
        const { tasks } = await engine.open()
        const inputs = { image: `data:image/png;base64,${'A'.repeat(3_000_000)}`, images: ['https://a.test/1'] }
        await tasks.add({ task: task('a'), inputs })
        expect(await tasks.inputs('task_a')).toEqual(inputs)
      })

      test('rejects an existing task_id, and stores nothing else of it', async () => {
        const { tasks } = await engine.open()
        await tasks.add({ task: task('a') })
        const results = await Promise.allSettled([
          tasks.add({ task: task('b') }),
          tasks.add({ task: task('a', { progress: 5 }), idempotency: keyOf('k'), inputs: { image: 'x' } }),
          tasks.add({ task: task('c') }),
        ])
        expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
        expect(await tasks.find('task_a')).toEqual(task('a'))
        expect(ids(await tasks.list({ limit: 9, order: 'asc' }))).toEqual(['a', 'b', 'c'])
        expect(await tasks.inputs('task_a')).toBeUndefined()
        expect((await tasks.add({ task: task('d'), idempotency: keyOf('k') })).outcome).toBe('added')
      })

      test('stores hundreds of concurrent tasks', async () => {
        const { tasks } = await engine.open()
        await Promise.all(Array.from({ length: 600 }, (_, index) => tasks.add({ task: task(`${index}`) })))
        expect((await tasks.health()).unfinished).toBe(600)
      })
    })

    describe('idempotency', () => {
      test('returns the first task for the same key and body, and a conflict for another body', async () => {
        const { tasks } = await engine.open()
        await tasks.add({ task: task('a'), idempotency: keyOf('k') })
        expect(await tasks.add({ task: task('b'), idempotency: keyOf('k') })).toEqual({
          outcome: 'replayed',
          task: task('a'),
        })
        const other = keyOf('k', { body_hash: 'another' })
        expect(await tasks.add({ task: task('c'), idempotency: other })).toEqual({ outcome: 'conflict' })
        expect(ids(await tasks.list({ limit: 9 }))).toEqual(['a'])
      })

      test('creates one task for many concurrent calls with one key', async () => {
        const { tasks } = await engine.open()
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            tasks.add({ task: task(`${index}`), idempotency: keyOf('k'), callback: callbackOf(`${index}`) }),
          ),
        )
        expect(answers.filter(({ outcome }) => outcome === 'added')).toHaveLength(1)
        const named = answers.map((answer) => ('task' in answer ? answer.task.task_id : 'conflict'))
        expect(new Set(named).size).toBe(1)
        expect(await tasks.list({ limit: 99 })).toHaveLength(1)
      })

      test('separates the keys of tokens', async () => {
        const { tasks } = await engine.open()
        await tasks.add({ task: task('a'), idempotency: keyOf('k') })
        const added = await tasks.add({ task: task('b', { token_id: 'tok_b' }), idempotency: keyOf('k') })
        expect(added.outcome).toBe('added')
      })

      test('accepts a key again when it expires, and not a second earlier', async () => {
        const { tasks } = await engine.open()
        await tasks.add({ task: task('a'), idempotency: keyOf('k', { expires_at: 2_000 }) })
        const early = task('b', { submit_time: 1_999 })
        expect((await tasks.add({ task: early, idempotency: keyOf('k') })).outcome).toBe('replayed')
        const late = task('c', { submit_time: 2_000 })
        const again = keyOf('k', { body_hash: 'another', expires_at: 3_000 })
        expect(await tasks.add({ task: late, idempotency: again })).toEqual({ outcome: 'added', task: late })
        const third = task('d', { submit_time: 2_001 })
        expect(await tasks.add({ task: third, idempotency: again })).toEqual({ outcome: 'replayed', task: late })
      })

      test('finds the task of a key for its token, until the key expires', async () => {
        const { tasks } = await engine.open()
        await tasks.add({ task: task('a'), idempotency: keyOf('k', { expires_at: 2_000 }) })
        const found = { task: task('a'), body_hash: keyOf('k').body_hash }
        expect(await tasks.findByKey('tok_a', 'k', 1_999)).toEqual(found)
        expect(await tasks.findByKey('tok_a', 'k', 2_000)).toBeUndefined()
        expect(await tasks.findByKey('tok_b', 'k', 1_999)).toBeUndefined()
        expect(await tasks.findByKey('tok_a', 'other', 1_999)).toBeUndefined()
      })

      test('returns a deleted task for its key, so that it is not paid twice', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a'), idempotency: keyOf('k') })
        await store.tasks.save(taken, SUCCESS)
        await store.tasks.remove('task_a', 'tok_a', 1_300)
        expect((await store.tasks.add({ task: task('b'), idempotency: keyOf('k') })).outcome).toBe('replayed')
      })

      test('deletes expired keys, up to the limit', async () => {
        const { tasks } = await engine.open()
        for (const [name, expires_at] of Object.entries({ a: 2_000, b: 2_001, c: 2_002, d: 2_003 }))
          await tasks.add({ task: task(name), idempotency: keyOf(name, { expires_at }) })
        expect(await tasks.deleteExpiredKeys(1_999, 10)).toBe(0)
        expect(await tasks.deleteExpiredKeys(2_002, 2)).toBe(2)
        expect(await tasks.deleteExpiredKeys(2_002, 2)).toBe(1)
        expect(await tasks.deleteExpiredKeys(2_002, 2)).toBe(0)
        const kept = await tasks.add({ task: task('e'), idempotency: keyOf('d') })
        expect(kept.outcome).toBe('replayed')
      })
    })

    describe('claims', () => {
      test('claims the due tasks of its provider only, and marks them', async () => {
        const store = await engine.open()
        await addAll(
          store,
          task('due', { due_ms: 20_000 }),
          task('later', { due_ms: 20_001 }),
          task('never', { due_ms: null }),
          task('other', { provider: 'p', due_ms: 1 }),
        )
        const taken = await claim(store)
        expect(taken).toEqual([task('due', { due_ms: 50_000, leased_by: 'worker', fence: 1 })])
        expect(await store.tasks.find('task_due')).toEqual(taken[0] as Task)
        expect(await claim(store)).toEqual([])
        expect(ids(await claim(store, { provider: 'p' }))).toEqual(['other'])
        expect(await store.tasks.find('task_later')).toEqual(task('later', { due_ms: 20_001 }))
      })

      test('gives a task with an expired lease to another worker, with a higher fence', async () => {
        const store = await engine.open()
        const first = await inHand(store, { task: task('a') })
        expect(await claim(store, { now_ms: 49_999 })).toEqual([])
        const [second] = await claim(store, { by: 'rival', now_ms: 50_000, until_ms: 80_000 })
        expect(second).toEqual({ ...first, leased_by: 'rival', due_ms: 80_000, fence: 2 })
      })

      test('returns the oldest task of each token before the second oldest of any', async () => {
        const store = await engine.open()
        for (let index = 0; index < 30; index++) await addAll(store, task(`a${index}`, { due_ms: 100 + index }))
        await addAll(
          store,
          task('b0', { token_id: 'tok_b', due_ms: 500 }),
          task('b1', { token_id: 'tok_b', due_ms: 501 }),
          task('c0', { token_id: 'tok_c', due_ms: 400 }),
          task('d0', { token_id: 'tok_d', due_ms: 30_000 }),
        )
        expect(ids(await claim(store, { limit: 2 }))).toEqual(['a0', 'c0'])
        expect(ids(await claim(store, { limit: 5 }))).toEqual(['a1', 'b0', 'a2', 'b1', 'a3'])
        expect(ids(await claim(store, { limit: 4 }))).toEqual(['a4', 'a5', 'a6', 'a7'])
        expect(await claim(store, { limit: 0 })).toEqual([])
        expect(await claim(store, { limit: 1_000 })).toHaveLength(22)
      })

      test('claims everything that is due once, in fair order, whatever the order and number', async () => {
        const due = fc.record({ token: fc.constantFrom('a', 'b', 'c', 'd'), due_ms: fc.integer({ min: 0, max: 9 }) })
        await fc.assert(
          fc.asyncProperty(fc.array(due, { maxLength: 25 }), fc.integer({ min: 1, max: 8 }), async (all, limit) => {
            const store = await engine.open()
            const tasks = all.map(({ token, due_ms }, index) =>
              task(String(index).padStart(2, '0'), { token_id: `tok_${token}`, due_ms }),
            )
            await Promise.all(tasks.map((each) => store.tasks.add({ task: each })))
            let left = tasks.filter((each) => (each.due_ms ?? 0) <= 5)
            while (left.length > 0) {
              const wanted = fairly(left).slice(0, limit)
              expect(ids(await claim(store, { now_ms: 5, limit }))).toEqual(ids(wanted))
              left = left.filter((each) => !wanted.includes(each))
            }
            expect(await claim(store, { now_ms: 5 })).toEqual([])
            await engine.cleanup()
          }),
          { numRuns: 12 },
        )
      })

      test('gives no task to two of many concurrent claims, and claims all', async () => {
        const store = await engine.open()
        const stores = engine.openAgain ? [store, await engine.openAgain(), await engine.openAgain()] : [store]
        await Promise.all(
          Array.from({ length: 200 }, (_, index) =>
            store.tasks.add({ task: task(`${index}`, { token_id: `tok_${index % 7}` }) }),
          ),
        )
        const taken: Task[] = []
        const work = async (from: Store, by: string) => {
          // Another claim may be running: an empty result is the end only when nothing is due any more.
          while (((await from.tasks.health()).earliest_due_ms ?? 99_000) <= 20_000)
            taken.push(...(await claim(from, { by, limit: 5 })))
        }
        await Promise.all(stores.flatMap((each, index) => [work(each, `w${index}`), work(each, `v${index}`)]))
        expect(taken).toHaveLength(200)
        expect(new Set(ids(taken)).size).toBe(200)
        expect(new Set(taken.map(({ fence }) => fence))).toEqual(new Set([1]))
        for (const each of taken.slice(0, 20))
          expect((await store.tasks.find(each.task_id))?.leased_by).toBe(each.leased_by)
      })

      test('lists each provider that has waiting tasks with its earliest time', async () => {
        const store = await engine.open()
        expect(await store.tasks.queues()).toEqual([])
        await addAll(
          store,
          task('a', { due_ms: 300 }),
          task('b', { provider: 'p', due_ms: 200 }),
          task('c', { provider: 'p', due_ms: 100, token_id: 'tok_b' }),
          task('d', { provider: 'q', due_ms: null }),
          task('e', { provider: 'r', due_ms: 5, status: 'FAILURE' }),
        )
        const lanes = [
          { provider: 'r', due_ms: 5 },
          { provider: 'p', due_ms: 100 },
          { provider: '', due_ms: 300 },
        ]
        expect(await store.tasks.queues()).toEqual(lanes)
        await claim(store, { provider: 'p', now_ms: 250, until_ms: 900 })
        expect(await store.tasks.queues()).toEqual([
          { provider: 'r', due_ms: 5 },
          { provider: '', due_ms: 300 },
          { provider: 'p', due_ms: 900 },
        ])
      })

      test('counts the unfinished tasks, and returns the oldest and the most overdue', async () => {
        const store = await engine.open()
        const nothing = { unfinished: 0, oldest_submit_time: null, earliest_due_ms: null }
        expect(await store.tasks.health()).toEqual(nothing)
        await addAll(
          store,
          task('a', { submit_time: 50, due_ms: 700 }),
          task('b', { submit_time: 60, due_ms: 600, provider: 'p' }),
          task('c', { submit_time: 10, due_ms: null, status: 'SUCCESS' }),
        )
        expect(await store.tasks.health()).toEqual({ unfinished: 2, oldest_submit_time: 50, earliest_due_ms: 600 })
      })
    })

    describe('saves', () => {
      test('changes the given fields and no other, and ends the claim', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a', { tried: ['x/y'] }), inputs: { image: 'i' } })
        const change: TaskChange = {
          status: 'QUEUED',
          provider: 'p',
          upstream_model: 'm',
          sent_at: 1_001,
          operation: { id: 1 },
          failures: 2,
          due_ms: 60_000,
        }
        expect(await store.tasks.save(taken, change)).toBe(true)
        const { entry: _, ...fields } = change
        const after: Task = { ...taken, ...fields, leased_by: '' }
        expect(await store.tasks.find('task_a')).toEqual(after)
        expect(await store.tasks.inputs('task_a')).toEqual({ image: 'i' })
        const rest: TaskChange = {
          progress: 7,
          start_time: 1_002,
          fail_reason: 'nul\0 is not text',
          tried: [],
          made: [{ url: 'u' }],
          outputs: [{ url: 'o', content_type: 'video/mp4' }],
          outputs_expire_at: 5,
          deadline_at: 6,
          late_outcome: { status: 'FAILURE', at: 1, detail: '' },
        }
        expect(await store.tasks.save(taken, rest)).toBe(true)
        const whole = { ...after, ...rest, fail_reason: 'nul is not text' }
        expect(await store.tasks.find('task_a')).toEqual(whole)
        expect(await store.tasks.save(taken, { operation: null, made: null, late_outcome: null })).toBe(true)
        expect(await store.tasks.find('task_a')).toEqual({ ...whole, operation: null, made: null, late_outcome: null })
      })

      test('keeps the claim for a step that continues, also with no other change', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a') })
        expect(await store.tasks.save(taken, { sent_at: 5, keep_lease: true })).toBe(true)
        expect(await store.tasks.find('task_a')).toEqual({ ...taken, sent_at: 5 })
        expect(await store.tasks.save(taken, { keep_lease: true })).toBe(true)
        expect(await store.tasks.save(taken, {})).toBe(true)
        expect(await store.tasks.find('task_a')).toEqual({ ...taken, sent_at: 5, leased_by: '' })
      })

      test('changes nothing after the lease was lost', async () => {
        const store = await engine.open()
        const lost = await inHand(store, { task: task('a'), inputs: { image: 'i' }, callback: callbackOf('a') })
        const [held] = await claim(store, { by: 'rival', now_ms: 50_000, until_ms: 80_000 })
        expect(await store.tasks.save(lost, { ...SUCCESS, drop_inputs: true })).toBe(false)
        expect(await store.tasks.find('task_a')).toEqual(held as Task)
        expect(await store.tasks.inputs('task_a')).toEqual({ image: 'i' })
        expect(await store.usage.list({ limit: 9 })).toEqual([])
        expect(await store.webhooks.earliest()).toBeNull()
        expect(await store.tasks.save({ task_id: 'task_none', fence: 1 }, SUCCESS)).toBe(false)
        expect(await store.usage.list({ limit: 9 })).toEqual([])
      })

      test('never changes the status of an ended task, nor counts it again', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a') })
        expect(await store.tasks.save(taken, SUCCESS)).toBe(true)
        const ended = await store.tasks.find('task_a')
        for (const status of TASK_STATUSES)
          expect(await store.tasks.save(taken, { ...SUCCESS, status, progress: 1, finish_time: 9 })).toBe(false)
        expect(await store.tasks.find('task_a')).toEqual(ended)
        expect(await store.usage.list({ limit: 9 })).toEqual([USAGE])
        const late_outcome = { status: 'SUCCESS', at: 2_000, detail: '' } as const
        expect(await store.tasks.save(taken, { late_outcome })).toBe(true)
        expect((await store.tasks.find('task_a'))?.late_outcome).toEqual(late_outcome)
      })

      test('stores and counts one of several concurrent ends', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a'), callback: callbackOf('a') })
        const answers = await Promise.all(
          Array.from({ length: 8 }, (_, index) => store.tasks.save(taken, { ...SUCCESS, finish_time: 1_200 + index })),
        )
        expect(answers.filter(Boolean)).toHaveLength(1)
        expect((await store.usage.list({ limit: 9 })).map(({ requests }) => requests)).toEqual([1])
        const finish = 1_200 + answers.indexOf(true)
        expect((await store.tasks.find('task_a'))?.finish_time).toBe(finish)
        expect(await store.webhooks.earliest()).toBe(finish * 1000)
      })

      test('never decreases status or progress', async () => {
        const step = fc.record({
          status: fc.constantFrom('NOT_START', 'SUBMITTED', 'QUEUED', 'IN_PROGRESS', undefined),
          progress: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
        })
        const store = await engine.open()
        let count = 0
        await fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
            count += 1
            const [name, provider] = [`${count}`, `p${count}`]
            const taken = await inHand(store, { task: task(name, { provider }) })
            let before = taken
            for (const { status, progress } of steps) {
              const change = { ...(status ? { status } : {}), ...(progress === undefined ? {} : { progress }) }
              expect(await store.tasks.save(taken, change)).toBe(true)
              const after = (await store.tasks.find(taken.task_id)) as Task
              const rank = (each: Task['status']) => TASK_STATUSES.indexOf(each)
              expect(rank(after.status)).toBe(Math.max(rank(before.status), rank(status ?? 'NOT_START')))
              expect(after.progress).toBe(Math.max(before.progress, progress ?? 0))
              before = after
            }
          }),
          { numRuns: 25 },
        )
      })

      test('deletes inputs when they are no longer needed, and at the end', async () => {
        const store = await engine.open()
        const first = await inHand(store, { task: task('a', { provider: 'p' }), inputs: { image: 'a' } })
        await store.tasks.save(first, { status: 'QUEUED', drop_inputs: true })
        expect(await store.tasks.inputs('task_a')).toBeUndefined()
        for (const [name, end] of [
          ['b', SUCCESS],
          ['c', FAILURE],
        ] as const) {
          const taken = await inHand(store, { task: task(name), inputs: { image: name } })
          expect(await store.tasks.inputs(`task_${name}`)).toEqual({ image: name })
          await store.tasks.save(taken, end)
          expect(await store.tasks.inputs(`task_${name}`)).toBeUndefined()
        }
      })
    })

    describe('lists', () => {
      const page = async (store: Store, filter: Partial<Parameters<Store['tasks']['list']>[0]>) =>
        ids(await store.tasks.list({ limit: 10, ...filter }))

      test('returns the newest or the oldest first, of a token or of all, within the limit', async () => {
        const store = await engine.open()
        await addAll(
          store,
          task('b', { submit_time: 20 }),
          task('a', { submit_time: 20 }),
          task('c', { submit_time: 10 }),
          task('d', { submit_time: 30, token_id: 'tok_b' }),
        )
        expect(await page(store, {})).toEqual(['d', 'b', 'a', 'c'])
        expect(await page(store, { order: 'asc' })).toEqual(['c', 'a', 'b', 'd'])
        expect(await page(store, { token_id: 'tok_a', limit: 2 })).toEqual(['b', 'a'])
        expect(await page(store, { token_id: 'tok_none' })).toEqual([])
      })

      test('returns pages without a gap or a repeat, also within one second', async () => {
        const store = await engine.open()
        const all = Array.from({ length: 11 }, (_, index) =>
          task(String.fromCharCode(97 + index), { submit_time: 10 + Math.floor(index / 4) }),
        )
        await addAll(store, ...all, task('z', { token_id: 'tok_b', submit_time: 11 }))
        for (const order of ['asc', 'desc'] as const) {
          const seen: string[] = []
          for (let after: string | undefined; ; after = `task_${seen.at(-1)}`) {
            const found = await page(store, { token_id: 'tok_a', limit: 3, order, ...(after ? { after } : {}) })
            seen.push(...found)
            if (found.length < 3) break
          }
          expect(seen).toEqual(order === 'asc' ? ids(all) : ids(all).toReversed())
        }
      })

      test("rejects a cursor that is unknown, another token's or another family's, and accepts one of a deleted task", async () => {
        const store = await engine.open()
        await addAll(store, task('a'), task('c'))
        const taken = await inHand(store, { task: task('b', { provider: 'p' }) })
        await store.tasks.save(taken, FAILURE)
        await store.tasks.remove('task_b', 'tok_a', 1)
        const others: Parameters<typeof page>[1][] = [
          { after: 'task_none' },
          { after: 'task_a', token_id: 'tok_b' },
          { after: 'task_a', families: ['3d-generation'] },
        ]
        for (const filter of others) {
          await expect(page(store, filter)).rejects.toMatchObject({ code: 'invalid_value', detail: { param: 'after' } })
        }
        expect(await page(store, { after: 'task_b', order: 'asc', token_id: 'tok_a' })).toEqual(['c'])
      })

      test('filters by status and family', async () => {
        const store = await engine.open()
        await addAll(
          store,
          task('a', { status: 'QUEUED' }),
          task('b', { status: 'SUCCESS', family: 'chatcompat-video' }),
          task('c', { status: 'NOT_START', family: 'chatcompat-video' }),
          task('d', { status: 'FAILURE' }),
        )
        expect(await page(store, { statuses: ['QUEUED', 'NOT_START'] })).toEqual(['c', 'a'])
        expect(await page(store, { statuses: ['FAILURE', 'QUEUED'] })).toEqual(['d', 'a'])
        expect(await page(store, { statuses: [...TASK_STATUSES] })).toEqual(['d', 'c', 'b', 'a'])
        expect(await page(store, { families: ['chatcompat-video'] })).toEqual(['c', 'b'])
        expect(await page(store, { families: ['chatcompat-video'], statuses: ['SUCCESS'] })).toEqual(['b'])
        expect(await page(store, { families: [] })).toEqual([])
      })

      test('returns several families in one order, page after page, without other families', async () => {
        const store = await engine.open()
        const families = ['video-generation', '3d-generation', 'chatcompat-video'] as const
        const all = Array.from({ length: 12 }, (_, index) =>
          task(String.fromCharCode(97 + index), {
            submit_time: 10 + Math.floor(index / 5),
            family: families[index % 3] ?? 'chatcompat',
          }),
        )
        await addAll(store, ...all)
        const wanted = ids(all.filter(({ family }) => family !== '3d-generation'))
        for (const order of ['asc', 'desc'] as const) {
          const seen: string[] = []
          for (let after: string | undefined; ; after = `task_${seen.at(-1)}`) {
            const both = { families: ['video-generation' as const, 'chatcompat-video' as const], limit: 3, order }
            const found = await page(store, { token_id: 'tok_a', ...both, ...(after ? { after } : {}) })
            seen.push(...found)
            if (found.length < 3) break
          }
          expect(seen).toEqual(order === 'asc' ? wanted : wanted.toReversed())
        }
        expect(await page(store, { statuses: [] })).toEqual([])
      })
    })

    describe('changes by clients and operators', () => {
      test('advances waiting tasks, and not those that are claimed, due already or never due', async () => {
        const store = await engine.open()
        await addAll(
          store,
          task('waits', { due_ms: 900 }),
          task('due', { due_ms: 100 }),
          task('never', { due_ms: null }),
          task('held', { due_ms: 900, leased_by: 'w' }),
        )
        await store.tasks.advancePolling(['task_waits', 'task_due', 'task_never', 'task_held', 'task_none'], 500)
        const due = await Promise.all(
          ['waits', 'due', 'never', 'held'].map(async (name) => (await store.tasks.find(`task_${name}`))?.due_ms),
        )
        expect(due).toEqual([500, 100, null, 900])
        await store.tasks.advancePolling([], 500)
        await store.tasks.advancePolling(
          Array.from({ length: 1_200 }, (_, index) => `task_${index}`),
          500,
        )
      })

      test('stores a cancel request once and makes the task due', async () => {
        const store = await engine.open()
        await addAll(store, task('a', { due_ms: 90_000 }), task('parked', { due_ms: null }))
        const asked = task('a', { cancel_asked_at: 40, due_ms: 40_500 })
        expect(await store.tasks.requestCancel('task_a', { now: 40, now_ms: 40_500 })).toEqual(asked)
        expect(await store.tasks.requestCancel('task_a', { now: 41, now_ms: 41_500 })).toEqual(asked)
        expect(await store.tasks.find('task_a')).toEqual(asked)
        expect((await store.tasks.requestCancel('task_parked', { now: 40, now_ms: 40_500 }))?.due_ms).toBe(40_500)
      })

      test('stores a cancel request together with its row of the audit log, or neither', async () => {
        const store = await engine.open()
        await addAll(store, task('a'))
        const now = { now: 40, now_ms: 40_500 }
        const fail = () => {
          throw new Error('stopped')
        }
        expect(await store.tasks.requestCancel('task_a', now, fail).catch(String)).toContain('stopped')
        expect((await store.tasks.find('task_a'))?.cancel_asked_at).toBeNull()
        const draft = { actor: 'a', at_ms: 1, action: 'task.cancel', object_type: 'task', object_id: 'task_a' }
        await store.tasks.requestCancel('task_a', now, ({ status }) => ({ ...draft, after: { status } }))
        expect((await store.audit.page({ limit: 9 })).rows).toMatchObject([{ action: 'task.cancel' }])
      })

      test('stores a cancel request for a claimed task, which keeps its worker', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a') })
        const asked = await store.tasks.requestCancel('task_a', { now: 21, now_ms: 21_000 })
        expect(asked).toEqual({ ...taken, cancel_asked_at: 21 })
        expect(await store.tasks.save(taken, { due_ms: 60_000 })).toBe(true)
        expect((await store.tasks.find('task_a'))?.cancel_asked_at).toBe(21)
      })

      test('rejects a cancel request for an ended or missing task', async () => {
        const store = await engine.open()
        await store.tasks.save(await inHand(store, { task: task('a') }), SUCCESS)
        expect(await store.tasks.requestCancel('task_a', { now: 1, now_ms: 1 })).toBeUndefined()
        expect(await store.tasks.requestCancel('task_none', { now: 1, now_ms: 1 })).toBeUndefined()
        expect((await store.tasks.find('task_a'))?.cancel_asked_at).toBeNull()
      })

      test('makes a waiting or failed task due again for the operator; a claimed one keeps its worker', async () => {
        const store = await engine.open()
        await store.tasks.save(await inHand(store, { task: task('ended') }), FAILURE)
        await addAll(store, task('waits', { due_ms: 99_000 }))
        const held = await inHand(store, { task: task('held') })
        const again = { due_ms: 70_000, deadline_at: 8_000 }
        for (const name of ['ended', 'waits', 'held'])
          expect(await store.tasks.resume(`task_${name}`, again)).toBe(true)
        expect(await store.tasks.resume('task_none', again)).toBe(false)
        await store.tasks.save(await inHand(store, { task: task('made') }), SUCCESS)
        expect(await store.tasks.resume('task_made', again)).toBe(false)
        expect(await store.tasks.find('task_ended')).toMatchObject({ ...again, status: 'FAILURE' })
        expect(await store.tasks.find('task_waits')).toMatchObject(again)
        expect(await store.tasks.find('task_held')).toEqual({ ...held, deadline_at: 8_000 })
      })
    })

    describe('removal', () => {
      test('hides an ended task from everyone, and makes its outputs due for removal', async () => {
        const store = await engine.open()
        const outputs = [{ key: 'k', content_type: 'video/mp4', bytes: 5 }]
        const taken = await inHand(store, { task: task('a') })
        expect(await store.tasks.remove('task_a', 'tok_a', 1_500)).toBe(false)
        await store.tasks.save(taken, { ...SUCCESS, outputs, outputs_expire_at: 90_000, due_ms: 60_000 })
        expect(await store.tasks.remove('task_a', 'tok_b', 1_500)).toBe(false)
        expect(await store.tasks.remove('task_none', 'tok_a', 1_500)).toBe(false)
        expect(await store.tasks.remove('task_a', 'tok_a', 1_500)).toBe(true)
        expect(await store.tasks.remove('task_a', 'tok_a', 1_500)).toBe(false)
        expect(await store.tasks.find('task_a')).toBeUndefined()
        expect(await store.tasks.list({ limit: 9 })).toEqual([])
        expect(await store.tasks.resume('task_a', { due_ms: 1, deadline_at: 1 })).toBe(false)
        expect(await store.tasks.save(taken, { due_ms: 1 })).toBe(false)
        expect(await store.tasks.queues()).toEqual([])
        expect(await store.tasks.outputsToRemove(1_499, 9)).toEqual([])
        expect(await store.tasks.outputsToRemove(1_500, 9)).toEqual([{ task_id: 'task_a', outputs }])
      })

      test('lists expired outputs, the oldest first, until their files are removed', async () => {
        const store = await engine.open()
        const outputs = [{ key: 'k', content_type: 'video/mp4' }]
        await addAll(
          store,
          task('c', { outputs, outputs_expire_at: 300 }),
          task('a', { outputs, outputs_expire_at: 100 }),
          task('b', { outputs, outputs_expire_at: 200 }),
          task('kept', { outputs }),
        )
        const due = async (now: number, limit = 9) =>
          (await store.tasks.outputsToRemove(now, limit)).map(({ task_id }) => task_id)
        expect(await due(200)).toEqual(['task_a', 'task_b'])
        expect(await due(300, 2)).toEqual(['task_a', 'task_b'])
        await store.tasks.outputsRemoved(['task_b', 'task_a', 'task_none'])
        expect(await due(300)).toEqual(['task_c'])
        expect((await store.tasks.find('task_a'))?.outputs).toEqual([])
        expect((await store.tasks.find('task_kept'))?.outputs).toEqual(outputs)
      })
    })

    describe('webhooks', () => {
      const waiting = (name: string) => ({
        callback_id: `cb_${name}`,
        task_id: `task_${name}`,
        token_id: 'tok_a',
        url: `https://client.test/${name}`,
        attempts: 0,
      })
      const next = (store: Store, now_ms: number, limit = 9) =>
        store.webhooks.claim({ now_ms, until_ms: now_ms + 1_000, limit })

      test('become due when their task has ended, and not before', async () => {
        const store = await engine.open()
        const taken = await inHand(store, { task: task('a'), callback: callbackOf('a') })
        await store.tasks.save(taken, { status: 'IN_PROGRESS', keep_lease: true })
        expect(await store.webhooks.earliest()).toBeNull()
        expect(await next(store, 9_000_000)).toEqual([])
        await store.tasks.save(taken, SUCCESS)
        expect(await store.webhooks.earliest()).toBe(1_200_000)
        expect(await next(store, 1_199_999)).toEqual([])
        expect(await next(store, 1_200_000)).toEqual([waiting('a')])
        expect(await next(store, 1_200_999)).toEqual([])
        expect(await next(store, 1_201_000)).toEqual([waiting('a')])
      })

      test('count attempts, are retried, and end', async () => {
        const store = await engine.open()
        await store.tasks.save(await inHand(store, { task: task('a'), callback: callbackOf('a') }), FAILURE)
        await next(store, 2_000_000)
        await store.webhooks.save('cb_a', {
          due_ms: 3_000_000,
          delivered_at: null,
          status: 0,
          at_ms: 1,
          error: null,
          took_ms: 5,
        })
        expect(await store.webhooks.ofTask('task_a')).toEqual({
          ...waiting('a'),
          attempts: 1,
          delivered_at: null,
          last_status: 0,
        })
        expect(await store.webhooks.earliest()).toBe(3_000_000)
        await store.webhooks.postpone([{ callback_id: 'cb_a', due_ms: 3_500_000 }])
        expect(await next(store, 3_500_000)).toEqual([{ ...waiting('a'), attempts: 1 }])
        await store.webhooks.save('cb_a', {
          due_ms: null,
          delivered_at: 3_501,
          status: 204,
          at_ms: 1,
          error: null,
          took_ms: 5,
        })
        expect(await store.webhooks.earliest()).toBeNull()
        expect(await store.webhooks.ofTask('task_a')).toMatchObject({
          attempts: 2,
          delivered_at: 3_501,
          last_status: 204,
        })
        expect(await store.webhooks.ofTask('task_none')).toBeUndefined()
      })

      test('are never claimed twice by concurrent claims', async () => {
        const store = await engine.open()
        const stores = engine.openAgain ? [store, await engine.openAgain()] : [store]
        for (let index = 0; index < 20; index++) {
          const order = { task: task(`${index}`), callback: callbackOf(`${index}`) }
          await store.tasks.save(await inHand(store, order), FAILURE)
        }
        const taken: string[] = []
        const work = async (from: Store) => {
          while (((await from.webhooks.earliest()) ?? 0) <= 2_000_000)
            for (const { callback_id } of await next(from, 2_000_000, 3)) taken.push(callback_id)
        }
        await Promise.all([...stores, ...stores].map(work))
        expect(taken).toHaveLength(20)
        expect(new Set(taken).size).toBe(20)
      })
    })

    describe('secrets', () => {
      test('are created once, and are the same for all callers', async () => {
        const store = await engine.open()
        const stores = engine.openAgain ? [store, await engine.openAgain()] : [store]
        let made = 0
        const make = () => `secret ${++made}`
        const values = await Promise.all([...stores, ...stores].map((each) => each.secrets.get('links', make)))
        expect(new Set(values).size).toBe(1)
        expect(await store.secrets.get('links', () => 'another')).toBe(values[0] ?? '')
        expect(await store.secrets.get('other', () => 'another')).toBe('another')
      })
    })

    describe('notifications', () => {
      test('announce added and changed tasks until the listener unsubscribes', async () => {
        const store = await engine.open()
        const heard: string[] = []
        const stop = store.tasks.watch(({ task_id, status }) => heard.push(`${task_id} ${status}`))
        const taken = await inHand(store, { task: task('a') })
        await store.tasks.save(taken, { status: 'QUEUED', keep_lease: true })
        await store.tasks.save({ ...taken, fence: 99 }, { status: 'IN_PROGRESS' })
        await store.tasks.save(taken, SUCCESS)
        expect(heard).toEqual(['task_a NOT_START', 'task_a QUEUED', 'task_a SUCCESS'])
        stop()
        await addAll(store, task('b'))
        expect(heard).toHaveLength(3)
      })
    })

    test('finishes its writes before it closes, and rejects later ones', async () => {
      const store = await engine.open()
      const adding = Array.from({ length: 20 }, (_, index) => store.tasks.add({ task: task(`${index}`) }))
      await Promise.all(adding)
      await store.close()
      await expect(store.tasks.add({ task: task('late') })).rejects.toThrow()
      if (engine.openAgain) expect((await (await engine.openAgain()).tasks.health()).unfinished).toBe(20)
    })
  })
}

/** A simple reference implementation of the order of a claim. */
function fairly(tasks: Task[]): Task[] {
  const sorted = tasks.toSorted((a, b) => (a.due_ms ?? 0) - (b.due_ms ?? 0) || (a.task_id < b.task_id ? -1 : 1))
  const turnOf = (each: Task) => sorted.filter(({ token_id }) => token_id === each.token_id).indexOf(each)
  return sorted.toSorted((a, b) => turnOf(a) - turnOf(b))
}
