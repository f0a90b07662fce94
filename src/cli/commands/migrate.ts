/** `gatehouse migrate`: what is missing in the schema of the database, and its migration. */
import type { PartitionPlan } from '../../store/engines/postgres-partition.ts'
import { openStore } from '../../store/open-store.ts'
import type { SchemaState } from '../../store/schema-state.ts'
import { StoreError } from '../../store/store.ts'
import { type PlannedMigration, planOf, schemaOf } from '../../store/store-schema.ts'
import { type Arguments, STORE_FLAGS, STORE_FLAGS_HELP } from '../arguments.ts'
import { actionsOf } from '../command.ts'
import { locateStore, storeToRead, storeToWrite } from '../store-location.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse migrate <status|plan|apply|partition> [options]

Shows or migrates the schema of the database. A start migrates it as well, unless store.migrate is manual. Processes that
migrate at the same time wait for one of them. A migration that fails changes nothing.

Commands:
  status     the schema of the database, of this build, and what is missing
  plan       the statements that apply would run
  apply      run the missing migrations, and build missing indexes
  partition  divide the request log by day; earlier versions cannot use it

Exit codes: 0 nothing is missing; 3 something is missing (status, plan); 4 a newer build has changed the database so that
this one cannot use it (status, plan); 1 it failed; 2 invalid arguments.

Options:
${STORE_FLAGS_HELP}
  --dry-run               partition: print the steps, and change nothing
  --json                  print one line of JSON

Examples:
  gatehouse migrate status
  GATEHOUSE_DATABASE_URL=postgres://... gatehouse migrate apply --json
`

const MISSING = 3
const TOO_NEW = 4

export const run = actionsOf('migrate', HELP, {
  status: { flags: STORE_FLAGS, run: (given, terminal) => show(given, terminal) },
  plan: { flags: STORE_FLAGS, run: (given, terminal) => show(given, terminal, planOf) },
  apply: { flags: STORE_FLAGS, run: apply },
  partition: { flags: { ...STORE_FLAGS, 'dry-run': 'switch' }, run: partition },
})

async function apply(given: Arguments, terminal: Terminal) {
  const { url, name: place } = locateStore(given, terminal)
  const before = await schemaOf(url)
  const { url: target } = storeToWrite(given, terminal)
  const store = await openStore({ url: target, mode: 'auto' })
  const after = await store.schema()
  await store.close()
  const applied = [...before.pending, ...before.missing_indexes].filter((one) => !after.pending.includes(one))
  return { data: { store: place, applied, ...after }, text: () => appliedText(place, applied, after) }
}

async function show(given: Arguments, terminal: Terminal, planFor?: typeof planOf) {
  const { url, name: place } = locateStore(given, terminal)
  const before = await schemaOf(url)
  storeToRead(given, terminal) // says where none is
  const plan = await planFor?.(url, before)
  const isMissing = before.pending.length + before.missing_indexes.length > 0
  return {
    data: { store: place, ...before, ...(plan && { plan }) },
    text: () => `${statusText(place, before)}${planText(plan)}`,
    code: before.status === 'too new' ? TOO_NEW : isMissing ? MISSING : 0,
  }
}

async function partition(given: Arguments, terminal: Terminal) {
  const { url, name: store } = locateStore(given, terminal)
  if (url.startsWith('sqlite:')) throw new StoreError('Only a store in PostgreSQL can be partitioned.')
  // Imported only here, like the driver of a store.
  const { partitionRequests, planPartitions } = await import('../../store/engines/postgres-partition.ts')
  const isDryRun = given.has('dry-run')
  const plan = await (isDryRun ? planPartitions : partitionRequests)(url, { now_ms: Date.now() })
  const text = () =>
    plan.is_done ? `The request log (${store}) is partitioned already.\n` : partitionText(plan, isDryRun)
  return { data: { store, dry_run: isDryRun, ...plan }, text }
}

function partitionText({ rows, until_ms, oldest }: PartitionPlan, isDryRun: boolean): string {
  const until = new Date(until_ms).toISOString().slice(0, 10)
  return `${isDryRun ? 'Nothing was changed. The steps:' : 'The request log is partitioned. The steps were:'}
1. Build a unique index of id and time (about ${rows} rows), while calls are written.
2. Add and validate a check that all rows are before ${until}. If the command is killed from here on, gateways drop the check.
3. Exchange the tables request_log and request_tags in one transaction. Calls wait for milliseconds; where a lock is not free, 0.2 s, every 2 s.
The table as it was holds the rows until ${until}, then each day has its own. Grants and views of these tables must be made again.
Builds before schema ${oldest} can no longer use the database: replace those that run first. The way back is a backup, restored into another database.
`
}

function statusText(place: string, state: SchemaState): string {
  const { status, database, build, oldest, reason, pending, newer, missing_indexes } = state
  const verdict = {
    current: 'nothing is missing',
    older: 'run gatehouse migrate apply',
    newer: 'a newer build has migrated it; this build can use it',
    'too new': 'this build cannot use it: run a newer one',
  }[status]
  const rows: [string, string][] = [
    ['schema of the database', `${database} (${place})`],
    ['schema of this build', String(build)],
    [
      'builds that can use it',
      oldest === null ? 'not recorded' : `schema ${oldest} and later${reason === null ? '' : `: ${reason}`}`,
    ],
    ['status', `${status}: ${verdict}`],
    ...pending.map((name): [string, string] => ['missing', name]),
    ...missing_indexes.map((name): [string, string] => ['missing index', name]),
    ...newer.map((name): [string, string] => ['of a newer build', name]),
  ]
  return rows.map(([label, value]) => `${label.padEnd(23)} ${value}\n`).join('')
}

/** Measured with 5 M tasks on two busy cores, of a file that was not in memory: 26 s. */
const INDEXED_PER_SECOND = 200_000
const waitText = (rows = 0): string =>
  rows === 0 ? '' : `: ${rows} rows; writes of other processes wait, some ${Math.ceil(rows / INDEXED_PER_SECOND)} s`

const planText = (plan: PlannedMigration[] = []): string =>
  plan
    .map(
      ({ name, statements, rows }) => `\n-- ${name}${waitText(rows)}\n${statements.map((one) => `${one};\n`).join('')}`,
    )
    .join('')

const appliedText = (place: string, applied: string[], { database }: SchemaState): string =>
  applied.length === 0
    ? `Nothing is missing: the database (${place}) has schema ${database}.\n`
    : `${applied.map((name) => `applied ${name}\n`).join('')}The database (${place}) has schema ${database}.\n`
