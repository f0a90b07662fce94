/** `gatehouse budget`: how budgets stand, and credit for prepaid ones. */

import { systemClock } from '../kit/clock.ts'
import { creditOf, isCredit } from '../ledger/credit.ts'
import { fromNano, MAX_AMOUNT, nanoText, toNano } from '../spec/money.ts'
import { type BudgetListing, NEVER } from '../store/budget-store.ts'
import { type Action, runAction, STORE_OPTIONS_HELP, type Work } from './accounts.ts'
import { UsageError } from './arguments.ts'
import { scopeNames } from './scope-names.ts'
import { table, timeText } from './table.ts'
import { bold, json, type Terminal } from './terminal.ts'

const HELP = `Usage: gatehouse budget <list | credit> [options]

Works on the store, whether or not a gateway is running. Budgets are set with gatehouse token and project (--budget)
and in the configuration file; a budget is listed once a call has counted towards it.

Commands:
  list                   show the budgets of this day, week, month or of all time, with what is used and held of each
  credit <amount>        add credit to the budgets of a token or project that never start again (--budget 0/total is
                         prepaid: only its credit can be used); a negative amount takes credit back
      --token <token>        its id or its name
      --project <project>    its id or its name
      --note <text>          for the ledger, such as the number of an invoice

Options:
  --quiet                 print only the id of the entry
${STORE_OPTIONS_HELP}

Examples:
  gatehouse budget list
  gatehouse token create --name customer --budget 0/total
  gatehouse budget credit 20 --token customer --note 'invoice 7'
`

const ACTIONS: Record<string, Action> = {
  list: { flags: {}, positionals: [], run: list },
  credit: {
    flags: { token: 'text', project: 'text', note: 'text', quiet: 'switch' },
    positionals: ['an amount, as in 20'],
    has_defaults: true,
    run: credit,
  },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'budget', help: HELP, actions: ACTIONS }, args, terminal)

const MAX_LISTED = 10_000

async function list({ given, store, tokens, projects, terminal }: Work): Promise<number> {
  const now_ms = systemClock.now()
  const [budgets, names] = await Promise.all([
    store.budgets.list({ now_ms, limit: MAX_LISTED }),
    Promise.all([tokens.list(), projects.list()]).then(([tokens, projects]) => scopeNames({ tokens, projects })),
  ])
  if (given.has('json')) {
    const rows = budgets.map(({ account_key, scope_key, start_ms, end_ms, settled, credit, held }) => ({
      budget: account_key,
      owner: names(scope_key),
      used: fromNano(settled),
      credit: fromNano(credit),
      held: fromNano(held),
      window_start: Math.floor(start_ms / 1000),
      window_end: end_ms === NEVER ? null : Math.floor(end_ms / 1000),
    }))
    terminal.out(json({ budgets: rows }))
  } else if (budgets.length === 0) terminal.out('No call has counted towards a budget yet.\n')
  else {
    const head = ['OWNER', 'WINDOW', 'USED', 'CREDIT', 'HELD', 'STARTED', 'ENDS']
    const [first = '', ...rest] = table([head, ...budgets.map((budget) => rowOf(budget, names))]).split('\n')
    terminal.out([bold(terminal, first), ...rest].join('\n'))
  }
  return 0
}

const rowOf = (budget: BudgetListing, names: (scope_key: string) => string): string[] => {
  const { account_key, scope_key, start_ms, end_ms, settled, credit, held } = budget
  const window = account_key.slice(scope_key.length + 1).split('/')[0] ?? ''
  const times = [timeText(start_ms / 1000), end_ms === NEVER ? '-' : timeText(end_ms / 1000)]
  return [names(scope_key), window, nanoText(settled), nanoText(credit), nanoText(held), ...times]
}

async function credit({ given, store, tokens, projects, config, terminal, by }: Work): Promise<number> {
  const command = 'budget credit'
  const amount = Number(given.positionals[0])
  if (!isCredit(amount)) {
    throw new UsageError(
      command,
      `needs an amount of at most ${MAX_AMOUNT} that is not 0; found ${given.positionals[0]}`,
    )
  }
  const [of_token, of_project] = [given.text('token'), given.text('project')]
  if ((of_token === undefined) === (of_project === undefined)) {
    throw new UsageError(command, 'needs either --token or --project')
  }
  const token = of_token === undefined ? undefined : await tokens.choose(of_token)
  const project = of_project === undefined ? undefined : await projects.choose(of_project)
  const owner = token ?? project
  const { entry, audit } = creditOf({
    owner: token ?? { project_id: project?.project_id },
    amount,
    note: given.text('note'),
    at_ms: systemClock.now(),
    origin: by,
  })
  const { entry_id } = entry
  await store.ledger.append([entry], { audit })
  const isUsed = owner?.budgets.some(({ window }) => window === 'total')
  const warnings = isUsed
    ? []
    : [
        `${owner?.name} has no budget that never starts again, so its credit has no effect; set one with --budget 0/total`,
      ]
  const currency = config?.ledger.currency ?? 'USD'
  if (given.has('json')) terminal.out(json({ entry_id, amount, currency, ...(isUsed ? {} : { warnings }) }))
  else {
    for (const text of warnings) terminal.err(`warning: ${text}\n`)
    terminal.out(
      given.has('quiet')
        ? `${entry_id}\n`
        : `${owner?.name} has ${nanoText(toNano(amount))} ${currency} more credit (${entry_id}).\n`,
    )
  }
  return 0
}
