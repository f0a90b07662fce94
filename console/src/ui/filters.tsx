/** A row of filters above a list. Their values belong into the address: `useAddress`. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { type Option, Select } from './select.tsx'

/** `onClear`: given while any filter is set. */
export function Filters({ children, onClear }: { children: ReactNode; onClear?: (() => void) | undefined }) {
  return (
    <search className="filters">
      {children}
      {onClear && (
        <Button kind="plain" onClick={onClear}>
          Clear filters
        </Button>
      )}
    </search>
  )
}

type SearchFieldProps = { label: string; value: string; onChange(value: string): void; placeholder?: string }

const DEBOUNCE_MILLISECONDS = 250

/** What is typed takes effect when the typing stops. */
export function SearchField({ label, value, onChange, placeholder = label }: SearchFieldProps) {
  const [typed, setTyped] = useState(value)
  const latest = useRef(onChange)
  latest.current = onChange
  useEffect(() => setTyped(value), [value])
  useEffect(() => {
    if (typed === value) return
    const timer = setTimeout(() => latest.current(typed), DEBOUNCE_MILLISECONDS)
    return () => clearTimeout(timer)
  }, [typed, value])
  return (
    <div className="search-field">
      <Icon name="search" />
      <input
        className="input"
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === 'Enter' && onChange(typed)}
      />
    </div>
  )
}

type Owner = { token_id: string; project_id: string }
type OwnerSearchProps = Owner & { onChange(owner: Owner): void }

/** Finds what is of a token or of a project. */
export const OwnerSearch = ({ token_id, project_id, onChange }: OwnerSearchProps) => (
  <SearchField
    label="Find by token or project id"
    placeholder="Token or project id"
    value={token_id || project_id}
    onChange={(typed) => {
      const id = typed.trim()
      onChange(id.startsWith('proj_') ? { token_id: '', project_id: id } : { token_id: id, project_id: '' })
    }}
  />
)

type FilterSelectProps = { label: string; value: string; options: Option[]; onChange(value: string): void }

/** One of some values, or any. A value of the address that is no option is shown all the same. */
export function FilterSelect({ label, value, options, onChange }: FilterSelectProps) {
  const isKnown = value === '' || options.some((option) => option.value === value)
  const all = [{ value: '', label: 'Any' }, ...options, ...(isKnown ? [] : [{ value, label: value }])]
  return <Select isCompact label={label} value={value} options={all} onChange={onChange} />
}
