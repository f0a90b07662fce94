/**
 * Fills a new store with what a gateway has after some weeks, without making calls: projects, tokens, models and request
 * rows with their sums. For tests in a browser and for benchmarks: `bun scripts/fill-store.ts <url> [empty|small|large]`.
 */
import { createHash } from 'node:crypto'
import { constants, copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256 } from '../src/kit/secret.ts'
import { MIGRATIONS } from '../src/store/migrate.ts'
import { openStore } from '../src/store/open-store.ts'
import type { RequestRow } from '../src/store/requests/request-row.ts'
import type { Store } from '../src/store/store.ts'
import { storedProject, storedToken } from '../test/kit/accounts.ts'

export const SIZES = {
  empty: { rows: 0, models: 0, tokens: 0, projects: 0, users: 0 },
  small: { rows: 2_000, models: 12, tokens: 20, projects: 4, users: 30 },
  large: { rows: 1_000_000, models: 500, tokens: 10_000, projects: 200, users: 20_000 },
} as const
export type Size = keyof typeof SIZES
type Counts = Record<keyof (typeof SIZES)['large'], number>

const DAYS = 30
const DAY_SECONDS = 86_400
const ROWS_PER_WRITE = 1_000
const ACCOUNTS_AT_ONCE = 250
const PROVIDERS = 8
const TEAMS = ['search', 'support', 'checkout', 'mobile', 'data', 'legal', 'research', 'growth']
const FAMILIES = ['swift', 'large', 'vision', 'coder', 'reason', 'mini']
const FAILURES = [
  [429, 'rate_limit_exceeded'],
  [502, 'upstream_error'],
  [504, 'upstream_timeout'],
  [400, 'invalid_value'],
] as const

/** The settings of a gateway that shows such a store: its models, each on the sandbox, and rows that are kept long enough. */
export function filledSettings(size: Size) {
  const names = Array.from({ length: SIZES[size].models }, (_, at) => modelOf(at))
  const models = Object.fromEntries(
    names.map((name) => [name, { targets: [{ provider: 'sandbox', model: 'general' }] }]),
  )
  return { models, keep_days: DAYS + 10 }
}

/** `now` in unix seconds: the last row is not younger. The same rows for the same `now`. */
export async function fillStore(store: Store, { size, now }: { size: Size | Counts; now: number }): Promise<void> {
  const counts = typeof size === 'string' ? SIZES[size] : size
  await addAccounts(store, counts, now)
  const random = createRandom()
  const start = now - DAYS * DAY_SECONDS
  let next_id = counts.rows === 0 ? 1 : await store.requestLog.reserve(counts.rows)
  for (let at = 0; at < counts.rows; at += ROWS_PER_WRITE) {
    const count = Math.min(ROWS_PER_WRITE, counts.rows - at)
    const rows = Array.from({ length: count }, (_, index) => {
      const at_ms = (start + ((at + index) / counts.rows) * DAYS * DAY_SECONDS) * 1_000
      return rowOf({ row_id: next_id++, at_ms: Math.floor(at_ms), counts, random })
    })
    await store.requestLog.append(rows, { is_repeated: false })
  }
  const kept = { minutes: DAY_SECONDS, hours: 40 * DAY_SECONDS, days: 1_100 * DAY_SECONDS }
  while (await store.requestSums.upkeep(now, kept));
}

/**
 * A SQLite file of its own for a test, a copy of one that is filled once a day for all tests: the large one takes minutes. Where
 * `GATEHOUSE_FILLED_DIR` is not set, that one is in the directory for temporary files.
 */
export async function filledStore(size: Size, copy: string): Promise<void> {
  const now = Math.floor(Date.now() / 1_000)
  const source = createHash('sha256')
    .update(readFileSync(import.meta.filename))
    .digest('hex')
    .slice(0, 8)
  const newest = Object.keys(MIGRATIONS).sort().at(-1)
  const name = `gatehouse-${size}-${Math.floor(now / DAY_SECONDS)}-${newest}-${source}.db`
  const file = join(process.env.GATEHOUSE_FILLED_DIR ?? tmpdir(), name)
  if (!existsSync(file)) {
    const filling = `${file}.${process.pid}`
    const store = await openStore({ url: `sqlite:${filling}` })
    await fillStore(store, { size, now })
    await store.close()
    renameSync(filling, file)
  }
  copyFileSync(file, copy, constants.COPYFILE_FICLONE)
}

async function addAccounts({ projects, tokens }: Store, counts: Counts, now: number): Promise<void> {
  const created_at = now - (DAYS + 1) * DAY_SECONDS
  for (let at = 0; at < counts.projects; at++)
    await projects.add(storedProject({ project_id: projectOf(at), name: `${nameOf(TEAMS, at)}`, created_at }))
  for (let at = 0; at < counts.tokens; at += ACCOUNTS_AT_ONCE) {
    const some = Array.from({ length: Math.min(ACCOUNTS_AT_ONCE, counts.tokens - at) }, (_, index) => at + index)
    await Promise.all(some.map((token) => tokens.add(accountOf(token, counts, created_at))))
  }
}

const accountOf = (at: number, counts: Counts, created_at: number) =>
  storedToken({
    token_id: tokenOf(at),
    project_id: projectOf(at % counts.projects),
    name: `${nameOf(TEAMS, at % counts.projects)}-service-${at}`,
    prefix: `sk-${at.toString(36).padStart(6, '0')}`,
    hash: sha256(`no secret ${at}`),
    created_at,
  })

const nameOf = (names: readonly string[], at: number): string => {
  const name = names[at % names.length] ?? ''
  return at < names.length ? name : `${name}-${Math.floor(at / names.length) + 1}`
}
const id = (prefix: string, at: number): string => `${prefix}_${at.toString(36).padStart(16, '0')}`
const tokenOf = (at: number): string => id('tok', at)
const projectOf = (at: number): string => id('proj', at)
const providerOf = (at: number): string => `vendor-${(at % PROVIDERS) + 1}`
const modelOf = (at: number): string => `${providerOf(at)}/${nameOf(FAMILIES, Math.floor(at / PROVIDERS))}`

/** The same numbers in every run. */
function createRandom(): () => number {
  let state = 42
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

type RowParts = { row_id: number; at_ms: number; counts: Counts; random: () => number }

function rowOf({ row_id, at_ms, counts, random }: RowParts): RequestRow {
  /** From 0 on, the small ones more often. */
  const pick = (count: number): number => Math.floor(random() ** 3 * count)
  const token = pick(counts.tokens)
  // A token mostly calls one of a few models.
  const model_at = Math.floor(counts.models * (((token * 0.618_034) % 1) ** 3 + pick(4) / 97)) % counts.models
  const [model, provider] = [modelOf(model_at), providerOf(model_at)]
  const failure = random() < 0.03 ? FAILURES[pick(FAILURES.length)] : undefined
  const isHit = failure === undefined && random() < 0.05
  const first_byte_ms = isHit ? 1 : Math.round(2_000 + random() ** 4 * 20_000) / 10
  const total_ms = first_byte_ms + (isHit ? 0.5 : Math.round(random() ** 3 * 200_000) / 10)
  const [input_tokens, output_tokens] = [20 + pick(4_000), failure ? 0 : 1 + pick(1_500)]
  const charge = isHit || failure ? 0 : input_tokens * 300 + output_tokens * 1_500
  return {
    row_id,
    at_ms,
    request_id: `req_${row_id.toString(36).padStart(12, '0')}${Math.floor(random() * 2 ** 48).toString(36)}`,
    token_id: tokenOf(token),
    project_id: projectOf(token % counts.projects),
    end_user: random() < 0.4 ? `user-${(token * 97 + pick(50)) % counts.users}` : null,
    session: random() < 0.3 ? `session-${pick(counts.users)}` : null,
    trace_id: random() < 0.1 ? row_id.toString(16).padStart(32, '0') : null,
    family: 'chatcompat',
    model,
    provider,
    target: `${provider}/general`,
    status: failure?.[0] ?? 200,
    error: failure?.[1] ?? null,
    total_ms,
    cost: charge,
    tags: random() < 0.2 ? [`env:${random() < 0.8 ? 'production' : 'test'}`, `feature-${pick(40)}`] : [],
    detail: {
      method: 'POST',
      path: '/v1/chat/completions',
      outcome: 'done',
      stream: true,
      first_byte_ms,
      ...(isHit && { cache: 'hit' }),
      units: { input_tokens, output_tokens },
      provider_cost: Math.round(charge * 0.8),
      attempts: isHit ? [] : [{ target: `${provider}/general`, ms: first_byte_ms }],
    },
  }
}

if (import.meta.main) {
  const [url = '', size = 'large'] = process.argv.slice(2)
  if (url === '' || !Object.hasOwn(SIZES, size)) {
    process.stderr.write(`Usage: bun scripts/fill-store.ts <url of a store> [${Object.keys(SIZES).join('|')}]\n`)
    process.exit(2)
  }
  const started = performance.now()
  const store = await openStore({ url })
  await fillStore(store, { size: size as Size, now: Math.floor(Date.now() / 1_000) })
  await store.close()
  process.stdout.write(`${size}: ${Math.round((performance.now() - started) / 1_000)} s\n`)
}
