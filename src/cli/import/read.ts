/** Reads a source with the reader of its gateway. */
import { isRecord, memberOf } from '../../kit/json.ts'
import { MAX_AMOUNT } from '../../spec/price.ts'
import type { Arguments } from '../arguments.ts'
import type { Terminal } from '../terminal.ts'
import { BIFROST } from './bifrost.ts'
import { createDraft, type Draft, type Reader, type SourceName } from './imported.ts'
import { LITELLM } from './litellm-accounts.ts'
import { ONE_API } from './one-api.ts'
import { PORTKEY } from './portkey.ts'
import { isAddress, readRunning } from './running.ts'
import { readSource } from './source.ts'
import type { PresentFile } from './write-file.ts'

const READERS: Record<SourceName, Reader> = {
  litellm: LITELLM,
  'new-api': ONE_API,
  'one-api': ONE_API,
  bifrost: BIFROST,
  portkey: PORTKEY,
}

type ImportParts = { given: Arguments; terminal: Terminal; present: PresentFile }

/** Throws an Error that says what is wrong with the source, and where. */
export async function readImport(
  name: SourceName,
  sources: readonly string[],
  { given, terminal, present }: ImportParts,
): Promise<Draft> {
  const reader = READERS[name]
  const instance = given.text('instance')
  if (instance !== undefined && !/^[A-Za-z0-9._-]{1,40}$/.test(instance))
    throw new Error('--instance must be 1 to 40 letters, digits and . _ -')
  const ledger = memberOf(present.tree, 'ledger')
  const draft = createDraft(name, present.tree)
  if (instance !== undefined) draft.origin = `${name}@${instance}`
  let isListed = false
  // Files of settings first: the models of their groups are known to what follows.
  const read = sources.map((from) =>
    isAddress(from) ? { from } : readSource(from, { cwd: terminal.cwd, names: reader.tables }),
  )
  for (const source of read.toSorted((one, other) => Number('tree' in other) - Number('tree' in one))) {
    if ('tree' in source) readTree(draft, source.tree, reader)
    else if ('from' in source)
      reader.readTables(draft, await readRunning(draft, { from: source.from, name, given, terminal }))
    else readDatabase(draft, source, reader)
    isListed ||= 'tables' in source
  }
  if (!isListed) draft.listed = undefined
  if (isRecord(ledger) && ledger.currency !== undefined && ledger.currency !== 'USD') convert(draft, ledger)
  return draft
}

/** Amounts of all sources are US dollars; prices of models say so themselves. */
function convert(draft: Draft, { currency, exchange_rates }: Record<string, unknown>): void {
  const { projects, tokens, settings } = draft
  const lists = [...projects.map((one) => one.settings), ...tokens.map((one) => one.settings), settings]
  const budgets = lists.flatMap((one) => (one.budgets ?? []) as { amount: number }[])
  const spenders = [...projects, ...tokens].filter(({ used = 0 }) => used > 0)
  if (budgets.length + spenders.length === 0) return
  const rate = memberOf(exchange_rates, 'USD')
  if (typeof rate !== 'number')
    throw new Error(`its amounts are US dollars, and those of the ledger ${currency}: set ledger.exchange_rates.USD`)
  const converted = (amount: number) => Math.min(MAX_AMOUNT, Number((amount * rate).toPrecision(12)))
  for (const one of budgets) one.amount = converted(one.amount)
  for (const one of spenders) one.used = converted(one.used ?? 0)
  draft.mapped('amounts of budgets and of what was spent', `${rate} ${currency} for each`, 'they are US dollars')
}

function readTree(draft: Draft, tree: Record<string, unknown>, reader: Reader): void {
  if (!reader.readTree) throw new Error(`it has none of the tables ${reader.tables.join(', ')}`)
  reader.readTree(draft, tree)
}

type Dump = Exclude<ReturnType<typeof readSource>, { tree: unknown }>

function readDatabase(draft: Draft, source: Dump, reader: Reader): void {
  reader.readTables(draft, source.tables)
  for (const name of source.isDatabase ? (reader.expected ?? []) : [])
    if (!source.tables.has(name)) draft.dropped(name, 'the source has no such table, or nothing of it')
  for (const other of source.others ?? []) draft.dropped(other, 'this import does not read it')
}
