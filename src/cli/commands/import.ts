/** `gatehouse import`: takes over the configuration, keys and budgets of another gateway. */
import { type Adopted, adoptAccounts } from '../../accounts/adopt.ts'
import { systemClock } from '../../kit/clock.ts'
import { notOneOf } from '../../kit/nearest.ts'
import { openStore } from '../../store/open-store.ts'
import { STORE_OPTIONS_HELP } from '../accounts.ts'
import { commandLineActor } from '../actor.ts'
import { type Arguments, STORE_FLAGS, UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { type Draft, type Line, SOURCES, type SourceName } from '../import/imported.ts'
import { readImport } from '../import/read.ts'
import { accountsOf } from '../import/write-accounts.ts'
import { planFile, presentFile, writeFile, writeSecrets } from '../import/write-file.ts'
import { storeToWrite } from '../store-location.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse import <gateway> <source>... [--dry-run] [--secrets <file>] [--config <file>]
                        [--data-dir <directory>] [--json]

Takes over another gateway: its providers, models, aliases and fallbacks into the configuration file, its teams, keys, budgets,
limits and what they have spent into the store. Clients keep their keys. What the file has already stays as it is. Done again, it
changes what the source has changed, and revokes keys that a database has no more. Without --dry-run it says the same, and writes.

  litellm   config.yaml, a dump of its database in SQL, a directory with its tables as CSV or JSON, or the address of a running one
  new-api   its file of SQLite, a dump of its database in SQL, a directory with its tables as CSV or JSON, or its address
  one-api   the same, without an address
  bifrost   config.json, its file of SQLite, or a dump of its database in SQL
  portkey   a config in JSON, conf.json, or a directory with responses of its admin API

Options:
  --dry-run               say line by line what would be carried, changed and dropped; write nothing
  --secrets <file>        write secrets that the source has in plain into a new environment file, for GATEHOUSE_ENV_FILE
  --key <file>            a file with the key of the admin API of a running gateway (default: LITELLM_MASTER_KEY;
                          NEW_API_ACCESS_TOKEN of the user NEW_API_USER, by default 1)
  --instance <name>       which one of several of this gateway it is: accounts of others stay as they are
  --insecure              allow plain http to another machine
${STORE_OPTIONS_HELP}

Examples:
  gatehouse import litellm config.yaml --dry-run
  gatehouse import litellm config.yaml litellm.sql --data-dir data
  gatehouse import litellm https://litellm.example.com --key master-key --dry-run
  gatehouse import new-api one-api.db --data-dir data --secrets secrets.env
`

const FLAGS = { 'dry-run': 'switch', secrets: 'text', key: 'text', insecure: 'switch', instance: 'text' } as const

export const run = plainCommand('import', HELP, {
  flags: { ...FLAGS, ...STORE_FLAGS },
  isOpen: true,
  positionals: [`a gateway to import from (${SOURCES.join(', ')})`],
  run: takeOver,
})

async function takeOver(given: Arguments, terminal: Terminal) {
  const [typed = '', ...sources] = given.positionals
  const from = sources.join(', ')
  const name = SOURCES.find((one) => one === typed)
  if (name === undefined) throw new UsageError('import', `the gateway to import from: ${notOneOf(typed, SOURCES)}`)
  if (sources.length === 0) throw new UsageError('import', 'needs its configuration, database or address')
  const present = presentFile(given, terminal)
  const draft = await readImport(name, sources, { given, terminal, present })
  const accounts = accountsOf(draft)
  const plan = planFile(draft, present, terminal)
  const isDryRun = given.has('dry-run')
  const hasAccounts = accounts.projects.length + accounts.tokens.length > 0 || accounts.known !== undefined
  // The store comes first: a file that names what is not there yet does no harm, and is written whole.
  const target = isDryRun || !hasAccounts ? undefined : storeToWrite(given, terminal)
  const secrets = given.text('secrets')
  if (!isDryRun && secrets !== undefined) writeSecrets(draft, secrets, terminal.cwd)
  const adopted = target === undefined ? [] : await adopt(target, accounts)
  const isWritten = !isDryRun && writeFile(plan)
  return outcomeOf({ draft, adopted, isWritten, isDryRun, file: plan, from, name })
}

async function adopt(
  target: ReturnType<typeof storeToWrite>,
  accounts: ReturnType<typeof accountsOf>,
): Promise<Adopted[]> {
  const store = await openStore(target)
  try {
    return await adoptAccounts(accounts, { store, now_ms: systemClock.now(), by: commandLineActor() })
  } finally {
    await store.close()
  }
}

type Shown = {
  draft: Draft
  adopted: Adopted[]
  isWritten: boolean
  isDryRun: boolean
  file: ReturnType<typeof planFile>
  from: string
  name: SourceName
}

function outcomeOf({ draft, adopted, isWritten, isDryRun, file, from, name }: Shown) {
  const { lines, providers, models, projects, tokens } = draft
  const variables = draft.variables.map((one) => ({
    name: one.name,
    from: one.from,
    in_plain: one.value !== undefined,
  }))
  const counts = { providers: providers.size, models: models.size, projects: projects.length, tokens: tokens.length }
  const { path, kept, problems } = file
  const accounts = adopted.filter(({ outcome }) => outcome !== 'same')
  const end = { file: path, kept, problems, accounts, written: isWritten, dry_run: isDryRun }
  const out: string[] = lines.map(lineText)
  out.push('')
  if (variables.length > 0) {
    out.push('Set these variables before the gateway starts:')
    for (const one of variables)
      out.push(`  ${one.name}  ${one.from}${one.in_plain ? ' (written there in plain)' : ''}`)
    out.push('')
  }
  for (const place of kept) out.push(`kept     ${place}: the file has it already`)
  for (const { kind, name, outcome, why } of accounts)
    out.push(`${outcome.padEnd(8)} ${kind} ${name}${why === undefined ? '' : `: ${why}`}`)
  for (const problem of problems) out.push(`problem  ${problem}`)
  out.push(
    Object.entries(counts)
      .map(([what, count]) => `${count} ${what}`)
      .join(', '),
  )
  const outcomes = (['carried', 'changed', 'dropped'] as const).map(
    (one) => `${lines.filter(({ outcome }) => outcome === one).length} ${one}`,
  )
  out.push(`${outcomes.join(', ')}.`)
  out.push(
    isDryRun ? 'Nothing was written (--dry-run).' : isWritten ? `${path} was written.` : `${path} did not change.`,
  )
  // Names of the source may have line breaks, and codes that a terminal obeys.
  const text = () => `${out.map((line) => line.replaceAll(UNPRINTABLE, ' ')).join('\n')}\n`
  return { data: { source: name, from, counts, lines, variables, ...end }, text }
}

const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

const lineText = ({ outcome, from, to, why }: Line): string =>
  `${outcome}  ${from}${to === undefined ? '' : ` -> ${to}`}${why === undefined ? '' : `: ${why}`}`
