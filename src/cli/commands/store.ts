/** `gatehouse store`: whether the database is damaged, and its copy into another engine. */
import { storeUrl } from '../../config/config.ts'
import { nanoText } from '../../spec/price.ts'
import { copyStore } from '../../store/backup/copy-store.ts'
import { checkStore } from '../../store/check-store.ts'
import type { StoreCheck } from '../../store/store.ts'
import { type Arguments, STORE_FLAGS, UsageError } from '../arguments.ts'
import { actionsOf } from '../command.ts'
import { locateStore, OTHER_DIRECTORIES } from '../store-location.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse store <check|copy> [options]

Checks whether the database is damaged, or copies it into the other engine. Exits with 1 if something is wrong.

Commands:
  check              the whole database, which a gateway may use. SQLite: every page, row and index. PostgreSQL: that no
                     index is invalid, and that the server has found no damaged page if it keeps checksums; pg_amcheck
                     does more. Changes nothing
      --quick            SQLite: do not compare the indexes with the rows, which is faster in a large file
  copy               all rows into a new SQLite file or an empty PostgreSQL database; then compares the numbers of rows
                     and both ledgers. Refuses a source that a gateway has open, and leaves the source as it is
      --from <engine>    sqlite (in the data directory) or postgres (GATEHOUSE_DATABASE_URL)
      --to <engine>      the other one

Options:
  --data-dir <directory>  data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data)
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print one line of JSON; "problems" has what was found

Examples:
  gatehouse store check
  gatehouse store check --data-dir /backup/data --json
  GATEHOUSE_DATABASE_URL=postgres://... gatehouse store copy --from sqlite --to postgres
`

export const run = actionsOf('store', HELP, {
  check: { flags: { quick: 'switch', ...STORE_FLAGS }, run: check },
  copy: { flags: { from: 'text', to: 'text', ...STORE_FLAGS }, run: copy },
})

async function check(given: Arguments, terminal: Terminal) {
  const { url, exists, name: place } = locateStore(given, terminal)
  if (!exists) throw new Error(`There is no store in ${place}. ${OTHER_DIRECTORIES}`)
  const result = await checkStore(url, { is_quick: given.has('quick') })
  const is_ok = result.problems.length === 0
  return { data: { store: place, is_ok, ...result }, text: () => textOf(place, result), code: is_ok ? 0 : 1 }
}

async function copy(given: Arguments, terminal: Terminal) {
  const command = 'store copy'
  const [from, to] = [given.text('from'), given.text('to')]
  const urls = urlsOf(given, terminal)
  if (!isEngine(from) || !isEngine(to) || from === to)
    throw new UsageError(command, 'needs --from and --to: one is sqlite, and the other one is postgres')
  if (urls.postgres === undefined)
    throw new UsageError(command, 'needs the PostgreSQL database in GATEHOUSE_DATABASE_URL')
  const { rows, ledger } = await copyStore({ from: urls[from] ?? '', to: urls[to] ?? '' })
  const { entries, differences } = ledger
  const [amount, cost] = [nanoText(ledger.amount), nanoText(ledger.cost)]
  const sum = Object.values(rows).reduce((total, one) => total + one, 0)
  return {
    data: { from, to, rows: sum, tables: rows, ledger: { entries, amount, cost, differences } },
    text: () =>
      `Copied ${sum} rows from ${from} to ${to}. Both ledgers have ${entries} entries, amount ${amount}, cost ${cost}, and ${differences} differences.\n`,
  }
}

const isEngine = (text: string | undefined): text is 'sqlite' | 'postgres' => text === 'sqlite' || text === 'postgres'

function urlsOf(given: Arguments, terminal: Terminal): { sqlite: string; postgres: string | undefined } {
  const { url, data_dir } = locateStore(given, terminal)
  return { sqlite: storeUrl(data_dir), postgres: url.startsWith('postgres') ? url : undefined }
}

function textOf(place: string, { engine, checked, problems }: StoreCheck): string {
  if (problems.length > 0) {
    const advice = 'Stop the gateway, keep a copy of what is there, and restore a backup.'
    const lines = problems.map((problem) => `  ${problem}\n`).join('')
    return `Something is wrong with the store in ${place} (${checked.join(', ')}):\n${lines}${engine === 'sqlite' ? `${advice}\n` : ''}`
  }
  const rest = engine === 'postgres' ? ' Its pages and rows were not read: pg_amcheck does that.' : ''
  return `No damage was found in the store in ${place} (${checked.join(', ')}).${rest}\n`
}
