/** The filters of the request log: those that are set as buttons, and a menu that adds one. */
import { type FormEvent, useState } from 'react'
import { useProjectName, useTokenName } from '../../ui/account-link.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Filters, SearchField } from '../../ui/filters.tsx'
import { Menu } from '../../ui/menu.tsx'
import { TimeRangeSelect } from '../../ui/time-range.tsx'
import { FacetValues } from './facet-values.tsx'
import { FILTERS, type Filter, type FilterValues, filterOfText, troubleOf } from './filters.ts'

type RequestFiltersProps = {
  values: FilterValues
  onChange(changes: FilterValues): void
  onClear(): void
  /** Whether a range of time can be chosen: of what happens now, it cannot. */
  hasRange: boolean
}

export function RequestFilters({ values, onChange, onClear, hasRange }: RequestFiltersProps) {
  const [edited, setEdited] = useState<Filter>()
  const set = FILTERS.filter(({ name }) => values[name] !== undefined)
  const others = FILTERS.filter(({ name }) => values[name] === undefined)
  return (
    <Filters onClear={set.length > 0 ? onClear : undefined}>
      <SearchField
        label="Find by request or trace id"
        placeholder="Request id, trace id or status"
        value=""
        onChange={(text) => {
          if (text.trim()) onChange({ [filterOfText(text.trim())]: text.trim() })
        }}
      />
      {hasRange && <TimeRangeSelect fallback="24h" />}
      {set.map((filter) => (
        <SetFilter
          key={filter.name}
          filter={filter}
          value={values[filter.name] ?? ''}
          onEdit={() => setEdited(filter)}
          onRemove={() => onChange({ [filter.name]: '' })}
        />
      ))}
      <Menu
        button={
          <Button icon="filter" kind="plain">
            Add filter
          </Button>
        }
        groups={[others.map((filter) => ({ label: filter.label, onClick: () => setEdited(filter) }))]}
      />
      {edited && (
        <FilterDialog
          key={edited.name}
          filter={edited}
          others={{ ...values, [edited.name]: undefined }}
          value={values[edited.name] ?? ''}
          onClose={() => setEdited(undefined)}
          onSet={(value) => {
            onChange({ [edited.name]: value })
            setEdited(undefined)
          }}
        />
      )}
    </Filters>
  )
}

type SetFilterProps = { filter: Filter; value: string; onEdit(): void; onRemove(): void }

function SetFilter({ filter: { name, label }, value, onEdit, onRemove }: SetFilterProps) {
  const projectName = useProjectName(name === 'project' ? value : '')
  const tokenName = useTokenName(name === 'token' ? value : '')
  const shown = { project: projectName, token: tokenName }[name as string] ?? value
  return (
    <span className="set-filter">
      <button type="button" className="set-filter-value" onClick={onEdit} title={`${label}: ${value}`}>
        <span className="faint">{label}</span> <span className="cut">{shown}</span>
      </button>
      <IconButton icon="close" size="small" label={`Remove the filter ${label}`} onClick={onRemove} />
    </span>
  )
}

type FilterDialogProps = {
  filter: Filter
  /** The other filters that are set: only values beside them are offered. */
  others: FilterValues
  value: string
  onClose(): void
  onSet(value: string): void
}

function FilterDialog({ filter, others, value, onClose, onSet }: FilterDialogProps) {
  const [typed, setTyped] = useState(value)
  const [isTried, setTried] = useState(false)
  const trouble = troubleOf(filter.name, typed)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!trouble) onSet(typed.trim())
  }
  return (
    <Dialog open onClose={onClose} title={filter.label}>
      {filter.facet && <FacetValues filter={filter.name} others={others} onSet={onSet} />}
      <form className="form" onSubmit={submit}>
        <TextField
          label={filter.facet ? 'Another value' : 'Value'}
          help={filter.help}
          placeholder={filter.example}
          value={typed}
          onChange={setTyped}
          inputMode={filter.kind === 'number' ? 'decimal' : 'text'}
          error={isTried ? trouble : undefined}
        />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">
            Filter
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
