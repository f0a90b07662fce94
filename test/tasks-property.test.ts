/** Property test: random providers, workers that die at any point, two at a time on one store; the invariants hold. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CrashPoint } from '../src/families/tasks/crash-points.ts'
import type { TaskProgress, VideoProvider } from '../src/providers/provider.ts'
import { type ErrorCode, GatewayError } from '../src/spec/error.ts'
import { FAIL_CODES, TASK_STATUSES, type Task } from '../src/spec/task.ts'
import { openStore } from '../src/store/open-store.ts'
import type { Store, TaskStore } from '../src/store/store.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { memoryFiles, scriptedVendor, settled, type TaskEngine, taskEngine } from './kit/task-engine.ts'

/** Fixed, so that a failure can be reproduced. */
const SEED = 20_261_121
const RUNS = 150
const TASKS = 3
const DEADLINE_MINUTES = 10

const never = () => new Promise<never>(() => {})

/** How a provider responds to one order. `lost`: it was accepted, and the response was lost. */
type OrderAnswer = 'takes' | 'lost' | 'lost untaken' | 'hangs' | 'garbage' | ErrorCode
const orderAnswer = fc.oneof(
  { weight: 6, arbitrary: fc.constant<OrderAnswer>('takes') },
  fc.constantFrom<OrderAnswer>('lost', 'lost untaken', 'hangs', 'garbage'),
  fc.constantFrom<OrderAnswer>(
    'rate_limit_exceeded',
    'upstream_auth',
    'upstream_unreachable',
    'bad_upstream_response',
    'content_policy_violation',
    'insufficient_quota',
  ),
)

type PollAnswer = TaskProgress | { error: ErrorCode; retry_after?: number } | 'hangs' | 'garbage' | 'fault'
const seconds = fc.constantFrom(0, 1, 7, 60, -3, Number.NaN)
const percent = fc.constantFrom(0, 1, 30, 99, 100, 250, -7, Number.NaN)
const pollAnswer: fc.Arbitrary<PollAnswer> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ status: fc.constantFrom('QUEUED' as const, 'IN_PROGRESS' as const), progress: percent }),
  },
  { weight: 2, arbitrary: fc.record({ retry_after_seconds: seconds, progress: percent }) },
  fc.constant<PollAnswer>({ status: 'MYSTERY' } as never),
  fc.record({
    error: fc.constantFrom<ErrorCode>('rate_limit_exceeded', 'bad_upstream_response', 'upstream_cut', 'upstream_auth'),
    retry_after: seconds,
  }),
  fc.constantFrom<PollAnswer>('hangs', 'garbage', 'fault'),
)
const outcome: fc.Arbitrary<PollAnswer> = fc.oneof(
  { weight: 5, arbitrary: fc.constant<PollAnswer>({ status: 'SUCCESS', outputs: [{ url: 'https://a.test/1' }] }) },
  fc.constant<PollAnswer>({ status: 'SUCCESS', outputs: [{ url: 'https://a.test/1' }, { url: 'https://a.test/2' }] }),
  fc.constant<PollAnswer>({ status: 'SUCCESS', outputs: [] }),
  fc.constant<PollAnswer>({ status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'no' }),
  fc.constant<PollAnswer>({ status: 'IN_PROGRESS' }),
)
const copyAnswer = fc.constantFrom('whole', 'whole', 'part', 'output_gone', 'output_refused', 'upstream_cut', 'hangs')

const vendorScript = fc.record({
  resubmit: fc.constantFrom('safe' as const, 'unsafe' as const),
  orders: fc.array(orderAnswer, { minLength: 1, maxLength: 4 }),
  polls: fc.array(pollAnswer, { maxLength: 8 }),
  outcome,
  cancel: fc.constantFrom('none', 'agrees', 'refuses', 'hangs'),
})
const world = fc.record({
  vendors: fc.tuple(vendorScript, vendorScript),
  copies: fc.array(copyAnswer, { maxLength: 4 }),
  /** The points (counted over all) at which the worker that reaches them dies. */
  deaths: fc.array(fc.nat(40), { maxLength: 4 }),
  cancel_after: fc.option(fc.nat(60), { nil: undefined }),
  workers: fc.constantFrom(1, 2),
})
type World = typeof world extends fc.Arbitrary<infer T> ? T : never
type VendorScript = World['vendors'][number]

/** What a provider knows of one task: the orders that it accepted, and those that it may have accepted. */
type Ledger = { vendor: string; key: string; outcome: 'taken' | 'refused' | 'open'; resubmit: 'safe' | 'unsafe' }

function vendorOf(name: string, script: VendorScript, ledgers: Map<string, Ledger[]>): VideoProvider {
  const orders = new Map<string, number>()
  const polls = new Map<string, number>()
  const turn = (counts: Map<string, number>, id: string) => {
    const count = counts.get(id) ?? 0
    counts.set(id, count + 1)
    return count
  }
  const vendor: Partial<VideoProvider> = {
    resubmit: script.resubmit,
    async start({ task_id, idempotency_key }) {
      const entry: Ledger = { vendor: name, key: idempotency_key, outcome: 'open', resubmit: script.resubmit }
      ledgers.set(task_id, [...(ledgers.get(task_id) ?? []), entry])
      const answer = script.orders[turn(orders, task_id) % script.orders.length] ?? 'takes'
      if (answer === 'hangs') return never()
      if (answer === 'lost' || answer === 'lost untaken')
        throw new GatewayError('upstream_cut', 'The connection broke.')
      if (answer === 'garbage') throw new TypeError('unreadable')
      if (answer !== 'takes') {
        entry.outcome = 'refused'
        throw new GatewayError(answer, 'refused', { accepted: 'no' })
      }
      entry.outcome = 'taken'
      return { operation: { id: task_id } }
    },
    async status(operation) {
      const { id } = operation as { id: string }
      const answer = script.polls[turn(polls, id)] ?? script.outcome
      if (answer === 'hangs') return never()
      if (answer === 'garbage') return undefined as never
      if (answer === 'fault') throw new TypeError('unreadable')
      if ('error' in answer) throw new GatewayError(answer.error, 'no', { retry_after: answer.retry_after ?? 1 })
      return answer
    },
  }
  if (script.cancel !== 'none') {
    vendor.cancel = async () => {
      if (script.cancel === 'hangs') return never()
      if (script.cancel === 'refuses') throw new GatewayError('upstream_invalid_request', 'too late')
    }
  }
  return scriptedVendor(vendor)
}

/** A process that can die: from then on it has no effect, and receives nothing. */
function mortal() {
  let is_dead = false
  const guarded = <T extends object>(parts: T): T =>
    new Proxy(parts, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          if (is_dead) return name === 'watch' ? () => {} : never()
          return value.apply(target, given)
        }
      },
    })
  const die = () => {
    is_dead = true
  }
  return { guarded, die, isDead: () => is_dead }
}

type Seen = Map<string, Task>

/** Checks the invariants of every task. */
async function check(store: TaskStore, ids: string[], seen: Seen): Promise<void> {
  for (const id of ids) {
    const task = await store.find(id)
    if (!task) throw new Error('a task is gone')
    const before = seen.get(id)
    if (before) checkStep(before, task)
    checkTask(task)
    seen.set(id, task)
  }
}

const rank = ({ status }: Task) => Math.min(4, TASK_STATUSES.indexOf(status))

function checkStep(before: Task, task: Task): void {
  expect(rank(task)).toBeGreaterThanOrEqual(rank(before))
  expect(task.progress).toBeGreaterThanOrEqual(before.progress)
  if (before.start_time !== 0) expect(task.start_time).toBe(before.start_time)
  if (rank(before) < 4) return
  const { late_outcome: _, due_ms, leased_by, fence, failures, ...final } = task
  expect(before).toMatchObject(final)
}

function checkTask(task: Task): void {
  const { status, submit_time, start_time, finish_time, progress, fail_code, fail_reason } = task
  const has_ended = rank(task) === 4
  expect(Number.isInteger(progress) && progress >= 0 && progress <= 100).toBe(true)
  expect(progress === 100).toBe(has_ended)
  if (start_time !== 0) expect(start_time).toBeGreaterThanOrEqual(submit_time)
  expect(finish_time !== 0).toBe(has_ended)
  if (has_ended) expect(finish_time).toBeGreaterThanOrEqual(Math.max(submit_time, start_time))
  if (status === 'IN_PROGRESS' || status === 'SUCCESS') expect(start_time).toBeGreaterThan(0)
  expect(
    status === 'FAILURE'
      ? Object.keys(FAIL_CODES).includes(fail_code) && fail_reason !== ''
      : fail_code + fail_reason === '',
  ).toBe(true)
  if (status === 'SUCCESS') expect(task.outputs.length).toBeGreaterThan(0)
}

/** An order that may have been accepted is sent to no other target, and not again unless repeating counts once. */
function checkLedger(orders: Ledger[]): void {
  const first = orders.find(({ outcome }) => outcome !== 'refused')
  if (!first) return
  const after = orders.slice(orders.indexOf(first) + 1)
  const allowed =
    first.resubmit === 'safe' ? after.filter(({ vendor, key }) => vendor === first.vendor && key === first.key) : []
  expect(after).toEqual(allowed)
}

async function live(given: World): Promise<{ tasks: Task[]; ledgers: Map<string, Ledger[]>; points: number }> {
  const clock: ManualClock = manualClock()
  const store = await openStore({ url: 'sqlite::memory:' })
  const ledgers = new Map<string, Ledger[]>()
  const [first, second] = given.vendors
  const vendors = { acme: vendorOf('acme', first, ledgers), zenith: vendorOf('zenith', second, ledgers) }
  let copies = 0
  const files = memoryFiles({
    async copy() {
      const answer = given.copies[copies++] ?? 'whole'
      if (answer === 'hangs') return never()
      if (answer === 'part') return { done: false, bytes: 1 }
      if (answer !== 'whole') throw new GatewayError(answer as ErrorCode, 'no')
      return undefined
    },
  })
  let points = 0
  const gateways: TaskEngine[] = []
  async function gateway(): Promise<TaskEngine> {
    const life = mortal()
    const at = (_: CrashPoint) => {
      if (!given.deaths.includes(points++) || life.isDead()) return
      life.die()
      reborn.push(gateway())
    }
    const guardedVendors = Object.fromEntries(Object.entries(vendors).map(([id, vendor]) => [id, life.guarded(vendor)]))
    const wrapStore = (whole: Store): Store => ({ ...whole, tasks: life.guarded(whole.tasks) })
    const made = await taskEngine({
      store,
      clock,
      files: life.guarded(files),
      vendors: guardedVendors,
      wrapStore,
      crashHook: at,
      settings: { deadline_minutes: DEADLINE_MINUTES, copy_deadline_minutes: DEADLINE_MINUTES },
    })
    gateways.push(made)
    return made
  }
  const reborn: Promise<TaskEngine>[] = []
  for (let worker = 0; worker < given.workers; worker++) await gateway()

  const ids: string[] = []
  const seen: Seen = new Map()
  const drift = async (paces: number, ms: number) => {
    for (let pace = 0; pace < paces; pace++) {
      clock.advance(ms)
      await settled()
      await check(store.tasks, ids, seen)
    }
  }
  for (let one = 0; one < TASKS; one++) {
    const submitted = gateways
      .at(-1)
      ?.submit()
      .then((id) => void ids.push(id))
    await Promise.race([submitted, settled()]) // its process may die on it
  }
  // A task that was stored before its process died counts as accepted, though no client got a response.
  for (const { task_id } of await store.tasks.list({ limit: 10 })) if (!ids.includes(task_id)) ids.push(task_id)
  const cancelled = ids[0]
  for (let second = 0; second < 60; second++) {
    await drift(1, 1_000)
    if (second === given.cancel_after && cancelled) {
      await store.tasks.requestCancel(cancelled, { now: Math.floor(clock.now() / 1000), now_ms: clock.now() })
    }
  }
  await drift(150, 10_000)
  await Promise.all(reborn)
  const tasks = [...seen.values()]
  await Promise.all(gateways.map((one) => Promise.race([one.tasks.stop({ deadline_ms: 0 }), settled()])))
  await store.close()
  return { tasks, ledgers, points }
}

describe('with random providers and crashes', () => {
  test('states go forward, progress never decreases, ends are final, times are ordered, and no order is paid twice', async () => {
    const ends = new Map<string, number>()
    let deaths = 0
    await fc.assert(
      fc.asyncProperty(world, async (given) => {
        const { tasks, ledgers, points } = await live(given)
        deaths += given.deaths.filter((at) => at < points).length
        for (const orders of ledgers.values()) checkLedger(orders)
        for (const task of tasks) {
          // Ten minutes of deadline, ten for the files, and some for leases: nothing is stuck.
          expect(rank(task)).toBe(4)
          expect(task.leased_by === '' || task.due_ms !== null).toBe(true)
          const end = task.fail_code || 'SUCCESS'
          const orders = ledgers.get(task.task_id) ?? []
          if (end === 'SUCCESS') expect(orders.some(({ outcome }) => outcome === 'taken')).toBe(true)
          ends.set(end, (ends.get(end) ?? 0) + 1)
        }
      }),
      { seed: SEED, numRuns: RUNS },
    )
    // The runs were meaningful: tasks ended in many ways, and processes did die.
    expect(deaths).toBeGreaterThan(RUNS / 4)
    expect(ends.size).toBeGreaterThan(6)
    expect(ends.get('SUCCESS')).toBeGreaterThan(RUNS / 4)
  }, 120_000)
})
