/** Lists the differences of two configurations by setting. */
import type { SettingChange } from '../../api/types.ts'
import { Badge } from '../../ui/display.tsx'
import { type Column, Table } from '../../ui/table.tsx'

const TONES = { added: 'ok', removed: 'danger', changed: 'info' } as const
const shown = (value: unknown): string =>
  value === undefined || value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value)

const COLUMNS: Column<SettingChange>[] = [
  { key: 'path', head: 'Setting', cell: ({ path }) => <span className="mono">{path}</span> },
  {
    key: 'kind',
    head: 'Change',
    cell: ({ kind }) => <Badge tone={TONES[kind as keyof typeof TONES] ?? 'plain'}>{kind}</Badge>,
  },
  { key: 'before', head: 'Before', cell: ({ before }) => <span className="mono cut">{shown(before)}</span> },
  { key: 'after', head: 'After', cell: ({ after }) => <span className="mono cut">{shown(after)}</span> },
]

export const ChangeList = ({ changes }: { changes: SettingChange[] }) => (
  <Table
    label="Changes"
    columns={COLUMNS}
    rows={changes}
    keyOf={({ path, kind }) => `${kind} ${path}`}
    empty={<p className="state">No setting differs.</p>}
  />
)
