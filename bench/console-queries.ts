/**
 * How long the queries of the console take on a store with a million requests, 500 models and 10,000 tokens: lists,
 * facets and summaries, through the admin API in this process. `--store <file>`: uses, or fills, this SQLite file. Ends
 * with status 1 where one takes more than its bound.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { filledSettings, filledStore } from '../scripts/fill-store.ts'
import { DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { startAdminGateway } from '../test/kit/admin.ts'

const ROUNDS = 7
/** Milliseconds: the median of a query. */
const MOST_FACETS = 100
const MOST = 300
const DAY = 86_400

const { values } = parseArgs({ options: { store: { type: 'string' } } })
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-console-queries-'))
const file = values.store ?? join(directory, 'gatehouse.db')
const print = (line: string) => void process.stdout.write(`${line}\n`)
const ms = (value: number): string => value.toFixed(1).padStart(8)

if (!existsSync(file)) {
  const started = performance.now()
  await filledStore('large', file)
  print(`filled in ${Math.round((performance.now() - started) / 1_000)} s`)
}

const { models, keep_days } = filledSettings('large')
const request_log = { ...DEFAULT_REQUEST_LOG, keep_days }
const gateway = await startAdminGateway({ models, request_log }, { store_url: `sqlite:${file}`, clock: systemClock })
const { data } = await gateway.read<{ data: Record<string, string>[] }>('/requests?limit=1')
const [newest = {}] = data
const now = Number(newest.created_at)
const { model, provider, project_id, token_id } = newest
const month = `start=${now - 30 * DAY}&end=${now}`
const weeks = `start=${now - 20 * DAY}&end=${now}`
const week = `start=${now - 7 * DAY}&end=${now}`
const hours = `start=${now - 6 * 3_600}&end=${now}`

const QUERIES: [path: string, most: number][] = [
  ['/requests', MOST],
  [`/requests?model=${model}&error=any`, MOST],
  [`/requests?token=${token_id}&from=${now - 20 * DAY}&to=${now - 10 * DAY}`, MOST],
  ['/requests/facets', MOST_FACETS],
  [`/requests/facets?project=${project_id}`, MOST_FACETS],
  ['/requests/facets?error=any', MOST_FACETS],
  [`/requests/facets?provider=${provider}&from=${now - DAY}&status=5xx`, MOST_FACETS],
  ['/requests/facets?tag=env:production', MOST_FACETS],
  [`/summary?${month}&step=day`, MOST],
  ...['project', 'token', 'model', 'provider', 'user', 'tag'].map((by): [string, number] => [
    `/summary?${month}&step=day&by=${by}`,
    MOST,
  ]),
  [`/summary?${weeks}&step=hour`, MOST],
  [`/summary?${weeks}&step=hour&by=model`, MOST],
  [`/summary?${weeks}&step=hour&by=token`, MOST],
  [`/summary?${week}&step=hour&by=project`, MOST],
  [`/summary?${hours}&step=minute&by=model`, MOST],
  [`/summary?${weeks}&step=hour&token=${token_id}&by=model`, MOST],
  [`/summary?${month}&step=day&project=${project_id}&by=token`, MOST],
  [`/summary?${weeks}&step=hour&model=${model}&by=project`, MOST],
  [`/summary?${month}&step=day&project=${project_id}&model=${model}`, MOST],
  ['/tokens?limit=50', MOST],
  ['/models?limit=50', MOST],
]

let isSlow = false
print('  median  slowest      KB  query')
for (const [path, most] of QUERIES) {
  const times: number[] = []
  let bytes = 0
  let note = ''
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now()
    const text = await (await gateway.admin(path)).text()
    times.push(performance.now() - started)
    bytes = text.length
    if (text.includes('"partial":true')) note = ' (partial)'
  }
  times.sort((a, b) => a - b)
  const median = times[Math.floor(ROUNDS / 2)] ?? 0
  if (median > most) isSlow = true
  print(
    `${ms(median)} ${ms(times.at(-1) ?? 0)} ${ms(bytes / 1_000)}  ${path}${note}${median > most ? '  TOO SLOW' : ''}`,
  )
}
await gateway[Symbol.asyncDispose]()
rmSync(directory, { recursive: true, force: true })
process.exitCode = isSlow ? 1 : 0
