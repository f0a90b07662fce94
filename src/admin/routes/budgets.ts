/** The admin API's budgets: how those of this day, week, month or of all time stand. */
import Type from 'typebox'
import type { Projects } from '../../accounts/projects.ts'
import type { Tokens } from '../../accounts/tokens.ts'
import { type BudgetSettings, nameOf } from '../../calls/budgets/budget-accounts.ts'
import { createFindOwner } from '../../calls/budgets/budget-owners.ts'
import { creditOf, isCredit } from '../../calls/budgets/credit.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, orNull, parameter, text, titled } from '../../spec/fields.ts'
import { fromNano, MAX_AMOUNT } from '../../spec/price.ts'
import { type BudgetListing, type BudgetStore, NEVER } from '../../store/ledger/budget-store.ts'
import type { LedgerStore } from '../../store/ledger/ledger-store.ts'
import { noSuch, originOf } from './edit.ts'
import { listAnswer, listRoute, pageAnswer, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type BudgetRouteParts = BodyParts & {
  budgets: Pick<BudgetStore, 'list'>
  ledger: Pick<LedgerStore, 'append'> & { currency(): string }
  tokens: Pick<Tokens, 'find' | 'list'>
  projects: Pick<Projects, 'find'>
  budgetSettings(): BudgetSettings
}

const AdminBudget = titled('AdminBudget', {
  budget: Type.String({ description: 'Names it, such as `token:tok_a/month/UTC/0`.' }),
  scope: Type.String({
    description: '`installation`, `project:<id>`, `token:<id>`, or `user:<id of the token or project>/<end user>`.',
  }),
  owner: orNull(Type.String(), 'Who has it, for people; null: an end user, or an owner that is gone.'),
  project_id: orNull(Type.String(), 'Of the owner, or the owner itself.'),
  window: Type.String({ description: '`day`, `week`, `month` or `total`.' }),
  amount: orNull(
    Type.Number(),
    'What may be used in the window, without credit; null: the owner has no such budget now.',
  ),
  soft: Type.Boolean({ description: 'Whether it only warns.' }),
  used: Type.Number({ description: 'In the currency of the ledger, as are `credit` and `held`.' }),
  credit: Type.Number(),
  held: Type.Number({ description: 'By open calls, unfinished tasks, and for the next calls.' }),
  window_start: Type.Integer({ description: 'Unix seconds.' }),
  window_end: orNull(Type.Integer(), 'Unix seconds; null: it never ends.'),
})

const CreditRequest = closedObject('CreditRequest', {
  amount: Type.Number({
    minimum: -MAX_AMOUNT,
    maximum: MAX_AMOUNT,
    description: 'In the currency of the ledger, not 0; a negative one takes credit back.',
  }),
  token_id: text('Either this or `project_id`.'),
  project_id: Type.Optional(Type.String()),
  note: text({ maxLength: 200 }, 'Such as the number of an invoice.'),
})

const Credit = titled('Credit', {
  entry_id: Type.String({ description: 'Of the ledger.' }),
  amount: Type.Number(),
  currency: Type.String(),
  token_id: orNull(Type.String()),
  project_id: orNull(Type.String()),
  warnings: Type.Array(Type.String(), {
    description: 'Such as that the owner has no budget without a window, so that the credit has no effect.',
  }),
})

const MAX_LISTED = 10_000

export function adminBudgetRoutes({
  budgets,
  ledger,
  tokens,
  projects,
  budgetSettings,
  ...parts
}: BudgetRouteParts): Route[] {
  const { clock } = parts
  const findOwner = createFindOwner({ store: { tokens, projects }, settings: budgetSettings, clock })
  const readCredit = bodyReader(CreditRequest, parts)

  /** The keys of the scopes of a project, its tokens, and end users of these. */
  async function scopesOf(project_id: string): Promise<(scope_key: string) => boolean> {
    const own = new Set([project_id, ...(await tokens.list({ project_id })).map(({ token_id }) => token_id)])
    return (scope_key) => own.has(/^(?:project|token|user):([^/]+)/.exec(scope_key)?.[1] ?? '')
  }

  async function shown(listing: BudgetListing) {
    const { account_key, scope_key, settled, credit, held, start_ms, end_ms } = listing
    const owner = await findOwner(scope_key)
    const budget = owner?.budgets.find((one) => nameOf(scope_key, one, clock.now()).account_key === account_key)
    return {
      budget: account_key,
      scope: scope_key,
      owner: owner?.label ?? null,
      project_id: owner?.project_id ?? null,
      window: account_key.slice(scope_key.length + 1).split('/')[0] ?? '',
      amount: budget?.amount ?? null,
      soft: budget?.soft ?? false,
      used: fromNano(settled),
      credit: fromNano(credit),
      held: fromNano(held),
      window_start: Math.floor(start_ms / 1000),
      window_end: end_ms === NEVER ? null : Math.floor(end_ms / 1000),
    }
  }

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { limit, after } = readPage(query)
    const own = context.admin.project_id
    const project_id = query.get('project_id') ?? own
    if (own !== undefined && project_id !== own) return listAnswer([], undefined)
    const isListed = project_id === undefined ? () => true : await scopesOf(project_id)
    const found = await budgets.list({ now_ms: clock.now(), limit: MAX_LISTED })
    const rows = found
      .filter(({ account_key, scope_key }) => isListed(scope_key) && account_key > (after?.[0] ?? ''))
      .sort((a, b) => (a.account_key < b.account_key ? -1 : 1))
    return pageAnswer(rows, { limit, view: shown, keyOf: ({ account_key }) => [account_key] })
  }

  async function credit(context: Context): Promise<Response> {
    const { amount, token_id, project_id, note } = await readCredit(context)
    if (!isCredit(amount)) throw invalidValue('amount', '"amount" must not be 0.')
    if ((token_id === undefined) === (project_id === undefined)) {
      throw new GatewayError('invalid_value', 'Exactly one of "token_id" and "project_id" is needed.')
    }
    const owner = token_id === undefined ? await projects.find(project_id ?? '') : await tokens.find(token_id)
    if (!owner) throw noSuch(token_id === undefined ? 'project' : 'token', token_id ?? project_id)
    const { entry, audit } = creditOf({
      owner: token_id === undefined ? { project_id } : { token_id, project_id: owner.project_id },
      amount,
      note,
      at_ms: clock.now(),
      origin: originOf(context),
    })
    await ledger.append([entry], { audit })
    const isUsed = owner.budgets.some(({ window }) => window === 'total')
    return Response.json({
      entry_id: entry.entry_id,
      amount,
      currency: ledger.currency(),
      token_id: token_id ?? null,
      project_id: project_id ?? null,
      warnings: isUsed ? [] : [`${owner.name} has no budget that never starts again, so its credit has no effect.`],
    })
  }

  return [
    listRoute(['GET', '/admin/v1/budgets', { right: 'read', project: 'own' }], {
      summary: 'List budgets',
      description:
        'Those whose window contains this moment, at most 10,000. A budget is listed once a call has counted towards it. Who is bound to a project sees its budgets, and those of its tokens and end users.',
      query: { project_id: parameter('Only the budgets of this project and its tokens.') },
      of: [AdminBudget, 'AdminBudgetList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['POST', '/admin/v1/budgets/credit', 'manage'], {
      summary: 'Give credit',
      description:
        'Adds to what a token or a project may use in its budget without a window, as an entry of the ledger. It counts in every gateway within seconds.',
      request: CreditRequest,
      example: { project_id: 'proj_0123456789abcdef', amount: 50, note: 'invoice 2026-0117' },
      response: Credit,
      errors: ['object_not_found', 'storage_unavailable'],
      handle: credit,
    }),
  ]
}
