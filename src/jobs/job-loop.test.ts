/** The job loop alone, on a store in memory and a manual clock: one process, then several that crash and stop. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ManualClock, manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import { createJobLoop, type JobClaim, type JobContext, type JobKind, LEASE_LOST } from './job-loop.ts'

const LEASE = 60_000
const BEAT = 20_000
const POLL = 5_000
/** The loop looks for more this soon after it has claimed something. */
const GATHER = 20

type Row = { id: string; queue: string; takes_ms: number; due_ms: number | null; fence: number; finished: number }
type Job = { row: Row; fence: number }

/** Lets everything that is not waiting for the clock run. */
const settled = async () => {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve))
}

function jobStore(clock: ManualClock) {
  const rows: Row[] = []
  const owns = ({ row, fence }: Job) => row.fence === fence && row.due_ms !== null
  return {
    rows,
    add(id: string, { queue = 'q', takes_ms = 1_000, due_ms = clock.now() } = {}) {
      rows.push({ id, queue, takes_ms, due_ms, fence: 0, finished: 0 })
    },
    async queues() {
      const first = new Map<string, number>()
      for (const { queue, due_ms } of rows) {
        if (due_ms !== null) first.set(queue, Math.min(first.get(queue) ?? Number.POSITIVE_INFINITY, due_ms))
      }
      return [...first].map(([queue, due_ms]) => ({ queue, due_ms }))
    },
    async claim({ queue, now_ms, until_ms, limit }: JobClaim): Promise<Job[]> {
      const due = rows.filter((row) => row.queue === queue && row.due_ms !== null && row.due_ms <= now_ms)
      return due.slice(0, limit).map((row) => {
        row.due_ms = until_ms
        return { row, fence: ++row.fence }
      })
    },
    async save(job: Job, due_ms: number | null): Promise<boolean> {
      if (!owns(job)) return false
      job.row.due_ms = due_ms
      if (due_ms === null) job.row.finished++
      return true
    },
  }
}
type JobStore = ReturnType<typeof jobStore>

/** Resolves when the clock has reached that time; rejects when the run is aborted. */
const work = (clock: ManualClock, ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const cancel = clock.after(ms, resolve)
    signal.addEventListener('abort', () => {
      cancel()
      reject(signal.reason)
    })
  })

function jobKind(store: JobStore, clock: ManualClock): JobKind<Job> {
  return {
    name: 'job',
    fieldsOf: ({ row }) => ({ id: row.id }),
    lease_ms: LEASE,
    poll_ms: POLL,
    queues: store.queues,
    concurrency: () => 2,
    claim: store.claim,
    async run(job, { signal }) {
      await work(clock, job.row.takes_ms, signal)
      await store.save(job, null)
      return undefined
    },
    release: (job) => store.save(job, clock.now()),
  }
}

function setUp(change: (kind: JobKind<Job>, clock: ManualClock) => Partial<JobKind<Job>> = () => ({})) {
  const clock = manualClock(0)
  const store = jobStore(clock)
  const began: string[] = []
  let text = ''
  const log = createLog({ clock, level: 'debug', pretty: false, write: (line) => (text += line) })
  const given = jobKind(store, clock)
  const kind = { ...given, ...change(given, clock) }
  const run = (job: Job, context: JobContext) => {
    began.push(job.row.id)
    return kind.run(job, context)
  }
  const loop = createJobLoop<Job>({ ...kind, run }, { clock, log })
  const logged = () => {
    log.flush()
    return text
  }
  const pass = async (ms: number) => {
    clock.advance(ms)
    await settled()
  }
  return { clock, store, loop, began, logged, pass }
}

describe('claiming', () => {
  test('runs a due job once and leaves one that is due later until then', async () => {
    const { store, loop, began, pass } = setUp()
    store.add('now')
    store.add('later', { due_ms: 3_000 })
    loop.start()
    await settled()
    expect(began).toEqual(['now'])
    await pass(GATHER)
    await pass(2_999 - GATHER)
    expect(began).toEqual(['now'])
    await pass(1)
    expect(began).toEqual(['now', 'later'])
    await pass(1_000)
    expect(store.rows.map(({ finished }) => finished)).toEqual([1, 1])
  })

  test('runs as many jobs of a queue as its concurrency, and the next when one ends', async () => {
    const { store, loop, began, pass } = setUp()
    for (const id of ['a', 'b', 'c']) store.add(id)
    store.add('other', { queue: 'another' })
    loop.start()
    await settled()
    expect(began).toEqual(['a', 'b', 'other'])
    await pass(1_000)
    expect(began).toEqual(['a', 'b', 'other', 'c'])
  })

  test('finds a job without a notification within the poll interval', async () => {
    const { store, loop, began, pass } = setUp()
    loop.start()
    await settled()
    store.add('a')
    await pass(POLL - 1)
    expect(began).toEqual([])
    await pass(1)
    expect(began).toEqual(['a'])
  })

  test('claims at once when it is woken or notified', async () => {
    let notify = () => {}
    const { store, loop, began } = setUp(() => ({
      watch(wake) {
        notify = wake
        return () => {}
      },
    }))
    loop.start()
    await settled()
    store.add('a')
    notify()
    await settled()
    store.add('b')
    loop.wake()
    await settled()
    expect(began).toEqual(['a', 'b'])
  })

  test('claims a job again at the time that its run returned', async () => {
    const { store, loop, began, pass } = setUp((_, clock) => ({
      async run(job) {
        const due_ms = clock.now() + 2_000
        await store.save(job, due_ms)
        return due_ms
      },
    }))
    store.add('a')
    loop.start()
    await settled()
    await pass(GATHER)
    await pass(1_999 - GATHER)
    expect(began).toHaveLength(1)
    await pass(1)
    expect(began).toHaveLength(2)
  })

  test('polls again after the store has failed', async () => {
    let fails = true
    const { store, loop, began, logged, pass } = setUp((kind) => ({
      claim: (claim) => (fails ? Promise.reject(new Error('store away')) : kind.claim(claim)),
    }))
    store.add('a')
    loop.start()
    await settled()
    expect(logged()).toContain('"event":"job claim failed"')
    fails = false
    await pass(POLL)
    expect(began).toEqual(['a'])
  })

  test('a job that fails affects no other job', async () => {
    const { store, loop, logged, pass } = setUp((kind) => ({
      run: (job, context) => (job.row.id === 'bad' ? Promise.reject(new Error('broken')) : kind.run(job, context)),
    }))
    store.add('bad')
    store.add('good')
    loop.start()
    await settled()
    await pass(1_000)
    expect(logged()).toContain('"event":"job failed"')
    expect(store.rows.map(({ finished }) => finished)).toEqual([0, 1])
  })
})

describe('fairness', () => {
  test('runs the claimed jobs that the fairness rule admits, postpones the others, and claims until all slots are used', async () => {
    const postponed: string[] = []
    const { store, loop, began, pass } = setUp((_, clock) => ({
      fairness: {
        reserve: ({ row }) => (row.id.startsWith('greedy') && clock.now() < 3_000 ? 3_000 : undefined),
        async postpone(jobs) {
          for (const { job, due_ms } of jobs) {
            postponed.push(job.row.id)
            await store.save(job, due_ms)
          }
        },
      },
    }))
    for (const id of ['greedy 1', 'greedy 2', 'greedy 3', 'modest']) store.add(id)
    loop.start()
    await settled()
    expect(postponed).toEqual(['greedy 1', 'greedy 2', 'greedy 3'])
    expect(began).toEqual(['modest'])
    await pass(3_000)
    expect(began.slice(0, 3)).toEqual(['modest', 'greedy 1', 'greedy 2'])
  })
})

describe('a run', () => {
  test('is aborted with the error of the kind when its time is up, unless it extends it', async () => {
    const late = new GatewayError('upstream_timeout', 'Too late.')
    const reasons: unknown[] = []
    let context: JobContext | undefined
    const { store, loop, pass } = setUp((_, clock) => ({
      timeout: { ms: 10_000, error: () => late },
      async run(_job, given) {
        context = given
        await work(clock, 600_000, given.signal).catch((reason) => reasons.push(reason))
        return undefined
      },
    }))
    store.add('a')
    loop.start()
    await settled()
    await pass(9_999)
    context?.extend(5_000)
    await pass(4_999)
    expect(reasons).toEqual([])
    await pass(1)
    expect(reasons).toEqual([late])
  })

  test('keeps its lease while it runs', async () => {
    const { store, loop, began, pass } = setUp(() => ({
      heartbeat: { every_ms: BEAT, renew: (job, until_ms) => store.save(job, until_ms) },
    }))
    store.add('a', { takes_ms: 5 * LEASE })
    loop.start()
    await settled()
    for (let passed = 0; passed < 5 * LEASE; passed += BEAT) await pass(BEAT)
    expect(began).toEqual(['a'])
    expect(store.rows[0]).toMatchObject({ fence: 1, finished: 1 })
  })

  test('is aborted when its lease is lost, and not released', async () => {
    const { store, loop, logged, pass } = setUp(() => ({
      heartbeat: { every_ms: BEAT, renew: (job, until_ms) => store.save(job, until_ms) },
    }))
    store.add('a', { takes_ms: 5 * LEASE })
    loop.start()
    await settled()
    const [row] = store.rows
    if (row) Object.assign(row, { fence: 7, due_ms: 10 * LEASE })
    await pass(BEAT)
    expect(logged()).toContain('"event":"job lease lost"')
    expect(row).toMatchObject({ fence: 7, due_ms: 10 * LEASE })
  })

  test('continues when one heartbeat fails', async () => {
    let beats = 0
    const { store, loop, logged, pass } = setUp(() => ({
      heartbeat: {
        every_ms: BEAT,
        renew: (job, until_ms) => (++beats === 1 ? Promise.reject(new Error('away')) : store.save(job, until_ms)),
      },
    }))
    store.add('a', { takes_ms: 3 * BEAT })
    loop.start()
    await settled()
    for (let round = 0; round < 3; round++) await pass(BEAT)
    expect(logged()).toContain('"event":"job lease not renewed"')
    expect(store.rows[0]).toMatchObject({ fence: 1, finished: 1 })
  })

  test('can be aborted from outside', async () => {
    const { store, loop, logged } = setUp()
    store.add('a')
    store.add('b')
    loop.start()
    await settled()
    loop.abort(({ row }) => row.id === 'b', LEASE_LOST)
    await settled()
    expect(logged().match(/"id":"\w"/g)).toEqual(['"id":"b"'])
  })
})

describe('a stop', () => {
  test('claims no more jobs and lets those that run finish', async () => {
    const { store, loop, began, clock } = setUp()
    for (const id of ['a', 'b', 'c']) store.add(id)
    loop.start()
    await settled()
    const stopped = loop.stop({ deadline_ms: 30_000 })
    await settled()
    clock.advance(1_000)
    await stopped
    expect(began).toEqual(['a', 'b'])
    expect(store.rows.map(({ finished }) => finished)).toEqual([1, 1, 0])
    expect(clock.waiting()).toBe(0)
  })

  test('aborts and releases those that miss the deadline', async () => {
    const { store, loop, clock } = setUp()
    store.add('slow', { takes_ms: 10_000 })
    loop.start()
    await settled()
    const stopped = loop.stop({ deadline_ms: 4_000 })
    await settled()
    clock.advance(3_999)
    await settled()
    expect(store.rows[0]?.due_ms).toBe(LEASE)
    clock.advance(1)
    await stopped
    expect(store.rows[0]).toMatchObject({ due_ms: 4_000, finished: 0 })
  })

  test('does not wait longer than two seconds for a job that ignores its signal', async () => {
    const { store, loop, clock } = setUp(() => ({ run: () => new Promise(() => {}) }))
    store.add('deaf')
    loop.start()
    await settled()
    const stopped = loop.stop({ deadline_ms: 0 })
    await settled()
    clock.advance(2_000)
    await stopped
  })

  test('gives such a job no other deadline when it is called again, and it knows that it stops', async () => {
    let isStopping = () => false
    const run = ({ stopping }: { stopping(): boolean }) => {
      isStopping = stopping
      return new Promise<never>(() => {})
    }
    const { store, loop, clock } = setUp(() => ({ run: (_, context) => run(context) }))
    store.add('deaf')
    loop.start()
    await settled()
    for (let times = 0; times < 2; times++) {
      const stopped = loop.stop({ deadline_ms: times * 30_000 })
      await settled()
      expect(isStopping()).toBe(true)
      clock.advance(2_000)
      await stopped
    }
  })
})

/** Several processes on one store; a crash is a process whose calls to the store never return again. */
type Step = { what: 'pass'; ms: number } | { what: 'crash' | 'stop' | 'start' } | { what: 'add'; takes_ms: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: LEASE }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ what: fc.constant('add' as const), takes_ms: fc.integer({ min: 0, max: LEASE }) }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('crash' as const, 'stop' as const) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('start' as const) }) },
)

test('after crashes and stops, each job runs in one live process at a time and finishes once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = manualClock(0)
      const store = jobStore(clock)
      const runs = new Map<string, object>()
      const processes: { life: { dead: boolean; runs: number }; loop: ReturnType<typeof createJobLoop<Job>> }[] = []
      const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })

      function startProcess(): void {
        const life = { dead: false, runs: 0 }
        const alive = <T>(result: () => Promise<T>): Promise<T> => (life.dead ? new Promise<T>(() => {}) : result())
        const kind = jobKind(store, clock)
        const loop = createJobLoop<Job>(
          {
            ...kind,
            queues: () => alive(kind.queues),
            claim: (claim) => alive(() => kind.claim(claim)),
            heartbeat: { every_ms: BEAT, renew: (job, until_ms) => alive(() => store.save(job, until_ms)) },
            async run(job, { signal }) {
              const other = runs.get(job.row.id) as typeof life | undefined
              expect(other === undefined || other.dead).toBe(true)
              runs.set(job.row.id, life)
              expect(++life.runs).toBeLessThanOrEqual(2)
              try {
                await work(clock, job.row.takes_ms, signal)
                await alive(() => store.save(job, null))
              } finally {
                life.runs--
                if (runs.get(job.row.id) === life) runs.delete(job.row.id)
              }
              return undefined
            },
            release: (job) => alive(() => store.save(job, clock.now())),
          },
          { clock, log },
        )
        loop.start()
        processes.push({ life, loop })
      }

      async function pass(ms: number): Promise<void> {
        for (let left = ms; left > 0; left -= BEAT / 2) {
          clock.advance(Math.min(left, BEAT / 2))
          await settled()
        }
      }

      startProcess()
      for (const taken of steps) {
        if (taken.what === 'pass') await pass(taken.ms)
        if (taken.what === 'add') store.add(`job ${store.rows.length}`, taken)
        if (taken.what === 'start' && processes.length < 3) startProcess()
        if (taken.what === 'crash') {
          const crashed = processes.shift()
          if (crashed) crashed.life.dead = true
        }
        if (taken.what === 'stop') await processes.shift()?.loop.stop({ deadline_ms: 0 })
        await settled()
      }
      startProcess()
      const rounds = store.rows.length + 3
      for (let round = 0; round < rounds && store.rows.some(({ finished }) => !finished); round++) await pass(LEASE)
      expect(store.rows.map(({ finished }) => finished)).toEqual(store.rows.map(() => 1))
      for (const { loop } of processes) await loop.stop({ deadline_ms: 0 })
    }),
    { seed: 20_261_122, numRuns: 60 },
  )
})
