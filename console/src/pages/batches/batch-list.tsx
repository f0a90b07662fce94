/** The list of batches by the filters of the address, for its page and for the batches beside one; their state and progress. */
import { useApiList } from '../../api/hooks.ts'
import type { AdminBatch } from '../../api/types.ts'
import { count } from '../../lib/format.ts'
import { choice, text } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { Badge, Meter, type Tone } from '../../ui/display.tsx'
import { useListPages } from '../../ui/list-pages.ts'

type Status = AdminBatch['status']

const STATES: Record<Status, { label: string; tone: Tone }> = {
  validating: { label: 'Checked', tone: 'info' },
  in_progress: { label: 'In progress', tone: 'info' },
  finalizing: { label: 'Storing results', tone: 'info' },
  cancelling: { label: 'Being canceled', tone: 'warn' },
  completed: { label: 'Completed', tone: 'ok' },
  failed: { label: 'Failed', tone: 'danger' },
  expired: { label: 'Expired', tone: 'danger' },
  cancelled: { label: 'Canceled', tone: 'plain' },
}
const FILTERS = ['', 'unfinished', ...(Object.keys(STATES) as Status[])] as const
export const STATUS_OPTIONS = FILTERS.flatMap((value) =>
  value === '' ? [] : [{ value, label: value === 'unfinished' ? 'Unfinished' : STATES[value].label }],
)
const READERS = { status: choice(FILTERS, ''), project_id: text(), token_id: text() }
export const NO_FILTER = { status: '', project_id: '', token_id: '' } as const

export function useBatchList({ refetch_ms = false }: { refetch_ms?: number | false } = {}) {
  const [filters, change] = useAddress(READERS)
  const kept = useKept(Object.keys(READERS))
  const query = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ''))
  const list = useListPages(useApiList('GET /admin/v1/batches', { query }, { refetch_ms }))
  return { filters, change, list, kept, isFiltered: Object.keys(query).length > 0 }
}

export const isEnded = ({ status }: Pick<AdminBatch, 'status'>): boolean =>
  ['completed', 'failed', 'expired', 'cancelled'].includes(status)

export const BatchState = ({ batch: { status, waiting } }: { batch: AdminBatch }) => (
  <span className="row">
    <Badge tone={STATES[status].tone}>{STATES[status].label}</Badge>
    {waiting && status === 'in_progress' && <span className="soft">waits: {waiting.code}</span>}
  </span>
)

export function BatchProgress({ batch }: { batch: AdminBatch }) {
  const { total, succeeded, errored, canceled, expired } = batch.lines
  const ended = succeeded + errored + canceled + expired
  const text = `${count(ended)} of ${count(total)}`
  return (
    <span className="batch-progress">
      <Meter label="Progress" value={ended} max={Math.max(1, total)} isProgress text={text} />
      <span>{text}</span>
    </span>
  )
}
