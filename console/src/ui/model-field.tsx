/** A choice of one model among any number of them: the gateway finds those that fit what is typed. */
import { useEffect, useState } from 'react'
import { useApiList } from '../api/hooks.ts'
import { Combobox } from './select.tsx'

type ModelFieldProps = {
  label?: string
  value: string
  /** Only models of one of these families, separated by commas. */
  family?: string
  /** Whether retired models are left out. */
  isCallable?: boolean
  /** Whether it is in a row of filters, with its label inside. */
  isCompact?: boolean
  placeholder?: string
  onChange(model: string): void
}

const SHOWN_MODELS = 50
const DEBOUNCE_MILLISECONDS = 150

export const CALLABLE = 'active,deprecated'

export function ModelField({ label = 'Model', family, isCallable = false, ...rest }: ModelFieldProps) {
  const [typed, setTyped] = useState('')
  const [q, setText] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setText(typed), DEBOUNCE_MILLISECONDS)
    return () => clearTimeout(timer)
  }, [typed])
  const query = { q, ...(family && { family }), ...(isCallable && { status: CALLABLE }) }
  const { rows, hasMore } = useApiList('GET /admin/v1/models', { query }, { limit: SHOWN_MODELS, keepPrevious: true })
  const options = rows.map(({ id, status }) => ({
    value: id,
    label: id,
    ...(status !== 'active' && { note: status }),
  }))
  return <Combobox {...rest} label={label} options={options} onSearch={setTyped} hasMore={hasMore} />
}
