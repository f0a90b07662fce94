/** `gatehouse budget`: how budgets stand, and credit for prepaid ones. */
import { isCredit } from '../../calls/budgets/credit.ts'
import { MAX_AMOUNT, nanoText, toNano } from '../../spec/price.ts'
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { type Arguments, UsageError } from '../arguments.ts'
import { scopeNames } from '../scope-names.ts'
import { headedTable, timeText } from '../table.ts'

const HELP = `Usage: gatehouse budget <list | credit> [options]

Works on a running gateway (--url) or on its store. A budget is listed
once a call has counted towards it.

Commands:
  list                   show the budgets of this day, week, month or of all time, with what is used and held of each
  credit <amount>        add credit to the total budgets of a token or project; a negative amount takes it back
      --token <token>        its id or its name
      --project <project>    its id or its name
      --note <text>          for the ledger, such as the number of an invoice

Options:
  --quiet                 print only the id of the entry
${OPTIONS_HELP}

Examples:
  gatehouse budget list
  gatehouse token create --name customer --budget 0/total
  gatehouse budget credit 20 --token customer --note 'invoice 7'
`

export const run = commandOf('budget', HELP, {
  list: { run: list },
  credit: {
    flags: { token: 'text', project: 'text', note: 'text', quiet: 'switch' },
    positionals: ['an amount, as in 20'],
    has_defaults: true,
    run: credit,
  },
})

/** A budget as the admin API shows it. */
type BudgetRow = {
  budget: string
  scope: string
  used: number
  credit: number
  held: number
  /** Unix seconds; null: it never ends. */
  window_start: number
  window_end: number | null
}

async function list({ api, terminal, ...work }: Work) {
  const budgets = (await api.all('/budgets')) as BudgetRow[]
  const [tokens, projects] = await Promise.all([work.tokens.list(), work.projects.list()])
  const names = scopeNames({ tokens, projects })
  const text = () => {
    if (budgets.length === 0) return 'No call has counted towards a budget yet.\n'
    const rows = budgets.map((budget) => rowOf(budget, names))
    return headedTable(['OWNER', 'WINDOW', 'USED', 'CREDIT', 'HELD', 'STARTED', 'ENDS'], rows, terminal)
  }
  return { data: { budgets: budgets.map(({ scope, ...row }) => ({ ...row, owner: names(scope) })) }, text }
}

const rowOf = (row: BudgetRow, names: (scope_key: string) => string): string[] => {
  const { budget, scope, used, credit, held, window_start, window_end } = row
  const window = budget.slice(scope.length + 1).split('/')[0] ?? ''
  const amounts = [used, credit, held].map((amount) => nanoText(toNano(amount)))
  return [names(scope), window, ...amounts, timeText(window_start), window_end === null ? '-' : timeText(window_end)]
}

/** Throws UsageError. `which`: the id or the name of a token or a project. */
function readCredit(given: Arguments): { amount: number; of: 'token' | 'project'; which: string } {
  const command = 'budget credit'
  const amount = Number(given.positionals[0])
  if (!isCredit(amount)) {
    throw new UsageError(
      command,
      `needs an amount of at most ${MAX_AMOUNT} that is not 0; found ${given.positionals[0]}`,
    )
  }
  const [token, project] = [given.text('token'), given.text('project')]
  if (token !== undefined && project === undefined) return { amount, of: 'token', which: token }
  if (token === undefined && project !== undefined) return { amount, of: 'project', which: project }
  throw new UsageError(command, 'needs either --token or --project')
}

async function credit({ given, api, tokens, projects, terminal }: Work) {
  const { amount, of, which } = readCredit(given)
  const owner = of === 'token' ? await tokens.choose(which) : await projects.choose(which)
  const id = 'token_id' in owner ? { token_id: owner.token_id } : { project_id: owner.project_id }
  const note = given.text('note')
  const body = { amount, ...id, ...(note !== undefined && { note }) }
  const { entry_id, currency } = (await api.call('/budgets/credit', { method: 'POST', body })).body
  const isUsed = owner.budgets.some(({ window }) => window === 'total')
  const warnings = isUsed
    ? []
    : [
        `${owner.name} has no budget that never starts again, so its credit has no effect; set one with --budget 0/total`,
      ]
  if (!given.has('json')) for (const text of warnings) terminal.err(`warning: ${text}\n`)
  return {
    data: { entry_id, amount, currency, ...(isUsed ? {} : { warnings }) },
    text: () => `${owner.name} has ${nanoText(toNano(amount))} ${currency} more credit (${entry_id}).\n`,
    quiet: `${entry_id}\n`,
  }
}
