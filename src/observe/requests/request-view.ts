/** Rows of the request log as operators see them, with what is known of them since: feedback, and what their task was charged. */
import { fromNano } from '../../spec/price.ts'
import type { Feedback, RequestDetail, RequestLogStore, RequestRow } from '../../store/requests/request-row.ts'

/** Amounts in units of the ledger's currency; null: not known. Members that are undefined are left out of JSON. */
export type RequestView = Omit<RequestDetail, 'provider_cost' | 'attempts'> &
  Omit<RequestRow, 'row_id' | 'detail' | 'cost'> & {
    object: 'request'
    /** Of the row: clients may repeat a `request_id`. */
    id: string
    /** Unix seconds. */
    created_at: number
    input_tokens: number
    output_tokens: number
    /** What the caller is charged. Of a task: once it has ended. */
    cost: number | null
    provider_cost: number | null
    attempts: NonNullable<RequestDetail['attempts']>
    feedback: Omit<Feedback, 'row_id'> | null
  }

export async function viewRequests(
  store: Pick<RequestLogStore, 'feedback' | 'taskCharges'>,
  rows: readonly RequestRow[],
): Promise<RequestView[]> {
  const [feedback, charges] = await Promise.all([
    store.feedback(rows.map(({ row_id }) => row_id)),
    store.taskCharges(rows.flatMap(({ detail }) => detail.task_id ?? [])),
  ])
  const byRow = new Map(feedback.map(({ row_id, ...given }) => [row_id, given]))
  return rows.map((row) => {
    const view = { ...viewRow(row), feedback: byRow.get(row.row_id) ?? null }
    const charge = row.detail.task_id === undefined ? undefined : charges.get(row.detail.task_id)
    return charge ? { ...view, cost: money(charge.amount), provider_cost: money(charge.cost) } : view
  })
}

export function viewRow({ row_id, detail, cost, ...row }: RequestRow): RequestView {
  const { provider_cost, attempts = [], ...rest } = detail
  return {
    object: 'request',
    id: String(row_id),
    ...row,
    created_at: Math.floor(row.at_ms / 1000),
    ...rest,
    input_tokens: detail.units?.input_tokens ?? 0,
    output_tokens: detail.units?.output_tokens ?? 0,
    cost: money(cost),
    provider_cost: money(provider_cost),
    attempts,
    feedback: null,
  }
}

const money = (nano: number | null | undefined): number | null =>
  nano === null || nano === undefined ? null : fromNano(nano)
