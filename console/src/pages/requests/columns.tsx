/** The columns of a list of requests, and the parts of a row that other lists of them show too. */
import type { Request } from '../../api/types.ts'
import { time } from '../../lib/format.ts'
import { Badge, Nothing, type Tone } from '../../ui/display.tsx'
import type { Column } from '../../ui/table.tsx'
import { Count, Duration, Money, ShortTime } from '../../ui/values.tsx'

/** What a row of the log and a live event have both. */
export type RequestRow = Omit<Request, 'id' | 'feedback'>

const toneOf = (status: number, error: string | null): Tone => {
  if (status >= 500 || (status === 0 && error !== null)) return 'danger'
  if (status >= 400 || error !== null) return 'warn'
  return 'ok'
}

/** The status, with the error code where there is one. */
export const Status = ({ row: { status, error } }: { row: Pick<RequestRow, 'status' | 'error'> }) => (
  <span className="request-status">
    <Badge tone={toneOf(status, error)}>{status === 0 ? 'none' : status}</Badge>
    {error && <span className="cut soft">{error}</span>}
  </span>
)

export const Tokens = ({ row }: { row: Pick<RequestRow, 'input_tokens' | 'output_tokens'> }) =>
  row.input_tokens === 0 && row.output_tokens === 0 ? (
    <Nothing text="–" />
  ) : (
    <span>
      <Count value={row.input_tokens} isShort />
      <span className="faint"> → </span>
      <Count value={row.output_tokens} isShort />
    </span>
  )

/** What the request was for: its model, or its path where no model was found. */
export const Subject = ({ row }: { row: Pick<RequestRow, 'model' | 'path'> }) =>
  row.model ? <span>{row.model}</span> : <span className="mono soft">{row.path ?? 'no model'}</span>

export const requestColumns = (nameOf: Names): Column<Request>[] => [
  { key: 'time', head: 'Time', cell: ({ created_at }) => <ShortTime at={created_at} /> },
  { key: 'status', head: 'Status', cell: (row) => <Status row={row} /> },
  { key: 'model', head: 'Model', cell: (row) => <Subject row={row} /> },
  { key: 'duration', head: 'Duration', cell: ({ total_ms }) => <Duration ms={total_ms} />, isNumber: true },
  { key: 'tokens', head: 'Tokens', cell: (row) => <Tokens row={row} />, isNumber: true },
  { key: 'cost', head: 'Cost', cell: ({ cost }) => <Money value={cost} />, isNumber: true },
  { key: 'caller', head: 'Project', cell: (row) => <Caller row={row} nameOf={nameOf} /> },
  { key: 'provider', head: 'Provider', cell: ({ provider }) => provider || <Nothing text="–" /> },
]

/** The name of a project by its id. */
export type Names = (project_id: string) => string

export const Caller = ({ row, nameOf }: { row: Pick<RequestRow, 'project_id' | 'token_id'>; nameOf: Names }) =>
  row.project_id === null ? <span className="faint">no project</span> : <span>{nameOf(row.project_id)}</span>

/** How a row is read to somebody who does not see the table. */
export const labelOf = ({ created_at, model, path, status }: RequestRow): string =>
  `${time(created_at)}: ${model || path || 'request'}, status ${status}`
