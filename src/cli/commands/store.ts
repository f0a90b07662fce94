/** `gatehouse store`: whether the database is damaged. */
import { checkStore } from '../../store/check-store.ts'
import type { StoreCheck } from '../../store/store.ts'
import { readAction, readCommand } from '../arguments.ts'
import { locateStore, OTHER_DIRECTORIES } from '../store-location.ts'
import { json, type Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse store <check> [options]

Checks whether the database is damaged, and changes nothing. Works whether or not a gateway is running. Exits with 1 if
something is wrong.

Commands:
  check              SQLite: every page, row and index. PostgreSQL: that no index is invalid, and that the server has
                     found no damaged page if it keeps checksums; pg_amcheck does more
      --quick            SQLite: do not compare the indexes with the rows, which is faster in a large file

Options:
  --data-dir <directory>  data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data); not for PostgreSQL
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print one line of JSON; "problems" has what was found

Examples:
  gatehouse store check
  gatehouse store check --data-dir /backup/data --json
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const read = readAction('store', args, { names: ['check'], help: HELP, terminal })
  return read ? check(read.args, terminal) : 0
}

async function check(args: string[], terminal: Terminal): Promise<number> {
  const flags = { quick: 'switch', config: 'text', 'data-dir': 'text' } as const
  const given = readCommand({ help: HELP, terminal, command: 'store check', args, flags })
  if (!given) return 0
  const { url, exists, name: place } = locateStore(given, terminal)
  if (!exists) throw new Error(`There is no store in ${place}. ${OTHER_DIRECTORIES}`)
  const result = await checkStore(url, { is_quick: given.has('quick') })
  const is_ok = result.problems.length === 0
  terminal.out(given.has('json') ? json({ store: place, is_ok, ...result }) : textOf(place, result))
  return is_ok ? 0 : 1
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
