/** A choice of one value: from few with a select, from many with a field that finds them. */
import { Combobox as BaseCombobox } from '@base-ui/react/combobox'
import { Select as BaseSelect } from '@base-ui/react/select'
import type { ReactNode } from 'react'
import { Field } from './field.tsx'
import { Icon } from './icon.tsx'

export type Option = { value: string; label: string; note?: string }

type ChoiceProps = {
  label: string
  value: string
  options: Option[]
  onChange(value: string): void
  disabled?: boolean
}

/** `isCompact`: in a row of filters, with its label inside. */
export function Select({
  help,
  isCompact = false,
  ...choice
}: ChoiceProps & { help?: ReactNode; isCompact?: boolean }) {
  if (isCompact) return <SelectControl {...choice} isCompact attributes={{ 'aria-label': choice.label }} />
  return (
    <Field label={choice.label} help={help}>
      {(control) => <SelectControl {...choice} isCompact={false} attributes={control} />}
    </Field>
  )
}

type ControlProps = ChoiceProps & { isCompact: boolean; attributes: Record<string, unknown> }

function SelectControl({ label, value, options, onChange, disabled = false, isCompact, attributes }: ControlProps) {
  const shown = options.find((option) => option.value === value)?.label ?? value
  return (
    <BaseSelect.Root
      value={value}
      disabled={disabled}
      // The library chooses null by itself where its list changes while it closes; a person always chooses an option.
      onValueChange={(chosen) => chosen !== null && onChange(String(chosen))}
    >
      <BaseSelect.Trigger {...attributes} className="select-trigger" data-compact={isCompact || undefined}>
        <span>
          {isCompact && <span className="select-name">{label}</span>}
          {shown}
        </span>
        <Icon name="down" />
      </BaseSelect.Trigger>
      <BaseSelect.Portal>
        <BaseSelect.Positioner className="positioner" sideOffset={4} alignItemWithTrigger={false}>
          <BaseSelect.Popup className="popup">
            {options.map((option) => (
              <BaseSelect.Item key={option.value} value={option.value} className="item">
                <BaseSelect.ItemText>{option.label}</BaseSelect.ItemText>
                <span className="item-end">
                  {option.note}
                  <BaseSelect.ItemIndicator>
                    <Icon name="check" />
                  </BaseSelect.ItemIndicator>
                </span>
              </BaseSelect.Item>
            ))}
          </BaseSelect.Popup>
        </BaseSelect.Positioner>
      </BaseSelect.Portal>
    </BaseSelect.Root>
  )
}

type ComboboxProps = ChoiceProps & {
  help?: ReactNode
  error?: string | undefined
  placeholder?: string | undefined
  isCompact?: boolean
  /** Given where what is typed brings further options; it hears what that is. */
  onSearch?(typed: string): void
  /** Whether more fit than `options` has. */
  hasMore?: boolean
}

/** Shows at most so many of the options that fit what is typed. */
const SHOWN_OPTIONS = 200

export function Combobox({ help, error, isCompact = false, ...choice }: ComboboxProps) {
  if (isCompact)
    return (
      <div className="search-field">
        <Icon name="search" />
        <ComboboxControl placeholder={choice.label} {...choice} attributes={{ 'aria-label': choice.label }} />
      </div>
    )
  return (
    <Field label={choice.label} help={help} error={error}>
      {(control) => <ComboboxControl {...choice} attributes={control} />}
    </Field>
  )
}

type ComboboxControlProps = Omit<ComboboxProps, 'help' | 'error' | 'isCompact'> & {
  attributes: Record<string, unknown>
}

function ComboboxControl(props: ComboboxControlProps) {
  const { label, value, options, onChange, disabled = false, placeholder, onSearch, hasMore, attributes } = props
  // A value that was found once stays, whatever is searched for now.
  const unknown = onSearch && value !== '' ? { value, label: value } : null
  const chosen = options.find((option) => option.value === value) ?? unknown
  return (
    <BaseCombobox.Root
      items={options}
      value={chosen}
      limit={SHOWN_OPTIONS}
      disabled={disabled}
      itemToStringLabel={(option: Option) => option.label}
      isItemEqualToValue={(one: Option, other: Option) => one.value === other.value}
      onValueChange={(option: Option | null) => onChange(option?.value ?? '')}
      {...(onSearch && {
        onInputValueChange: (typed: string, { reason }: { reason: string }) =>
          onSearch(reason === 'input-change' ? typed : ''),
      })}
    >
      <BaseCombobox.Input {...attributes} className="input" placeholder={placeholder} />
      <BaseCombobox.Portal>
        <BaseCombobox.Positioner className="positioner" sideOffset={4}>
          <BaseCombobox.Popup className="popup" aria-label={label}>
            <BaseCombobox.Empty>
              <div className="item faint">Nothing fits.</div>
            </BaseCombobox.Empty>
            <BaseCombobox.List>
              {(option: Option) => (
                <BaseCombobox.Item key={option.value} value={option} className="item">
                  {option.label}
                  {option.note && <span className="item-end">{option.note}</span>}
                </BaseCombobox.Item>
              )}
            </BaseCombobox.List>
            {hasMore && <div className="item faint">Type more to see others.</div>}
          </BaseCombobox.Popup>
        </BaseCombobox.Positioner>
      </BaseCombobox.Portal>
    </BaseCombobox.Root>
  )
}
