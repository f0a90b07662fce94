/** Headers that are sent with every request to a provider, a row each. */
import { Button, IconButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'

export type HeaderRow = { key: number; name: string; value: string }

/** Those with a name; undefined: there are none. */
export function headersOf(rows: HeaderRow[]): Record<string, string> | undefined {
  const named = rows.filter(({ name }) => name.trim() !== '').map(({ name, value }) => [name.trim(), value])
  return named.length === 0 ? undefined : Object.fromEntries(named)
}

export function HeaderRows({ rows, onChange }: { rows: HeaderRow[]; onChange(rows: HeaderRow[]): void }) {
  const set = (key: number, part: Partial<HeaderRow>) =>
    onChange(rows.map((row) => (row.key === key ? { ...row, ...part } : row)))
  return (
    <div className="stack-small">
      {rows.map(({ key, name, value }, index) => (
        <div key={key} className="row header-row">
          <TextField label={`Header ${index + 1}`} value={name} onChange={(text) => set(key, { name: text })} />
          <TextField label={`Value ${index + 1}`} value={value} onChange={(text) => set(key, { value: text })} />
          <IconButton
            icon="close"
            label={`Remove header ${index + 1}`}
            onClick={() => onChange(rows.filter((row) => row.key !== key))}
          />
        </div>
      ))}
      <div className="row">
        <Button
          size="small"
          icon="plus"
          onClick={() => onChange([...rows, { key: (rows.at(-1)?.key ?? 0) + 1, name: '', value: '' }])}
        >
          Add a header
        </Button>
      </div>
    </div>
  )
}
