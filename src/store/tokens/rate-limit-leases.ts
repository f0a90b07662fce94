/** Leases of rate limits in the database, shared by all gateways on it. */
import type { Engine } from '../engine.ts'
import { createInsert, createStatement } from '../fixed-statements.ts'
import type { Write } from '../tables.ts'
import { assertMoves } from '../tasks/due-times.ts'
import {
  ELSEWHERE,
  LEASE_LAPSES_MS,
  type Lease,
  type LeaseRow,
  type LeaseWish,
  type RateLimitStore,
} from './lease-store.ts'

/** A process may have used all it held until its lease lapsed: in windows up to this length, that counts. */
const SHORT_WINDOW_MS = 60_000
/** Bounds the parameters of a statement, and how many different statements there are. */
const ROWS_AT_ONCE = 100
/** The row that locks an exchange, so that two processes do not get the same rest. */
const NOUN = 'rate limits'

export function rateLimitStore({ write }: Engine): RateLimitStore {
  return {
    exchange: (process_id, wishes, { now_ms, moves }, elsewhere) =>
      write(async (rows) => {
        await assertMoves(rows, moves)
        await lockExchange(rows, [NOUN, 1])
        await deleteEnded(rows, [now_ms])
        const inside = elsewhere === undefined ? undefined : await processesIn(rows, elsewhere)
        const leases: Lease[] = []
        for (let first = 0; first < wishes.length; first += ROWS_AT_ONCE) {
          const some = wishes.slice(first, first + ROWS_AT_ONCE)
          leases.push(...(await grant(rows, { process_id, wishes: some, now_ms, inside })))
        }
        const { rows: counted } = await countProcesses<{ processes: number }>(rows, [now_ms - LEASE_LAPSES_MS])
        const apart = inside === undefined ? 0 : await countApart(rows, [process_id, ...inside])
        return { leases, processes: Math.max(1, Number(counted[0]?.processes)), apart }
      }),
  }
}

const lockExchange = createInsert({
  table: 'revisions',
  columns: ['noun', 'revision'],
  after: 'on conflict (noun) do update set revision = revisions.revision + 1',
})
const deleteEnded = createStatement(() => 'delete from rate_limit_leases where ends_ms <= ?')
const countProcesses = createStatement(
  () => 'select count(distinct process_id) as processes from rate_limit_leases where renewed_ms > ?',
)
const findOthers = createStatement(
  (counters) => `select * from rate_limit_leases
    where counter in (${Array.from({ length: counters }, () => '?').join(', ')}) and process_id <> ?`,
)
const putLeases = createInsert({
  table: 'rate_limit_leases',
  columns: ['counter', 'process_id', 'held', 'used', 'window_ms', 'renewed_ms', 'ends_ms'],
  after: `on conflict (counter, process_id) do update set
    held = excluded.held, used = excluded.used, renewed_ms = excluded.renewed_ms, ends_ms = excluded.ends_ms`,
})

async function processesIn(rows: Write, counter: string): Promise<Set<string>> {
  const found = await rows.selectFrom('rate_limit_leases').select('process_id').where('counter', '=', counter).execute()
  return new Set(found.map(({ process_id }) => process_id))
}

async function countApart(rows: Write, inside: string[]): Promise<number> {
  const { apart } = await rows
    .selectFrom('rate_limit_leases')
    .select(({ fn }) => fn.count<number>('process_id').distinct().as('apart'))
    .where('process_id', 'not in', inside)
    .where('counter', 'not like', `${ELSEWHERE}%`)
    .executeTakeFirstOrThrow()
  return Number(apart)
}

type Granting = {
  process_id: string
  wishes: readonly LeaseWish[]
  now_ms: number
  inside: ReadonlySet<string> | undefined
}

async function grant(rows: Write, { process_id, wishes, now_ms, inside }: Granting): Promise<Lease[]> {
  const names = wishes.map(({ counter }) => counter)
  const others = new Map<string, number>()
  const apart = new Map<string, number>()
  const { rows: found } = await findOthers<LeaseRow>(rows, [...names, process_id], names.length)
  for (const row of found) {
    const held = heldAt(row, now_ms)
    others.set(row.counter, (others.get(row.counter) ?? 0) + held)
    if (inside?.has(row.process_id) === false) apart.set(row.counter, (apart.get(row.counter) ?? 0) + held)
  }
  const granted = wishes.map((wish) => {
    const other = others.get(wish.counter) ?? 0
    const held = Math.max(wish.total, Math.min(wish.requested, wish.limit - other))
    return { wish, lease: { counter: wish.counter, held, others: other, apart: apart.get(wish.counter) ?? 0 } }
  })
  const kept = granted.filter(({ lease }) => lease.held > 0)
  const gone = granted.filter(({ lease }) => lease.held <= 0).map(({ lease }) => lease.counter)
  if (gone.length > 0) {
    await rows
      .deleteFrom('rate_limit_leases')
      .where('counter', 'in', gone)
      .where('process_id', '=', process_id)
      .execute()
  }
  if (kept.length > 0) {
    const values: unknown[] = []
    for (const { wish, lease } of kept) addValues(values, process_id, { wish, held: lease.held, now_ms })
    await putLeases(rows, values)
  }
  return granted.map(({ lease }) => lease)
}

/** In the order of the columns. */
function addValues(
  values: unknown[],
  process_id: string,
  { wish, held, now_ms }: { wish: LeaseWish; held: number; now_ms: number },
): void {
  const { counter, window_ms, parts } = wish
  const used = parts.map(([leaves_in_ms, amount]) => `${leaves_in_ms}:${amount}`).join(',')
  // A part leaves at the latest 1/128 of the window after it.
  const ends_ms = now_ms + LEASE_LAPSES_MS + Math.ceil(window_ms * (1 + 1 / 64))
  values.push(counter, process_id, held, used, window_ms, now_ms, ends_ms)
}

/** What another process holds: all of it while its lease is valid; then what it has used, until that leaves the window. */
function heldAt({ held, used, window_ms, renewed_ms, ends_ms }: LeaseRow, now_ms: number): number {
  if (now_ms >= ends_ms) return 0
  if (now_ms < renewed_ms + LEASE_LAPSES_MS) return held
  let known = 0
  let left = 0
  for (const part of used === '' ? [] : used.split(',')) {
    const [leaves_in_ms = 0, amount = 0] = part.split(':').map(Number)
    known += amount
    if (renewed_ms + leaves_in_ms > now_ms) left += amount
  }
  const mayBeUsed = window_ms > 0 && window_ms <= SHORT_WINDOW_MS ? Math.max(0, held - known) : 0
  return left + mayBeUsed
}
