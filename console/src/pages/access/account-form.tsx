/** The fields that tokens and projects have in common: models, limits, budgets, end users, expiry, addresses, labels. */
import { type ReactNode, useState } from 'react'
import { useApi, useMe } from '../../api/hooks.ts'
import { CALL_FAMILIES, familyName } from '../../lib/families.ts'
import { seesAll } from '../../shell/page.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Checkbox, errorOf, FormError, TextArea, TextField } from '../../ui/field.tsx'
import { Combobox, Select } from '../../ui/select.tsx'
import { type BudgetRow, type Draft, LIMITS, type LimitName, type LimitRow, nextKey, WINDOWS } from './draft.ts'

type FormProps = {
  draft: Draft
  onChange(change: Partial<Draft>): void
  /** The error of the last attempt; the gateway names the field. */
  error: Error | null
  /** Fields between the name and the rest. */
  children?: ReactNode
}

const OWN_ERRORS = ['name', 'models', 'guards', 'expires_at', 'allowed_addresses', 'labels']

export function AccountFields({ draft, onChange, error, children }: FormProps) {
  return (
    <>
      <TextField
        label="Name"
        value={draft.name}
        onChange={(name) => onChange({ name })}
        required
        maxLength={200}
        autoFocus
        error={errorOf(error, 'name')}
      />
      {children}
      <TextArea
        label="Models"
        help="One name or pattern a line, such as sandbox/*. Empty: what the configuration's defaults say."
        rows={2}
        value={draft.models}
        onChange={(models) => onChange({ models })}
        error={errorOf(error, 'models')}
      />
      <FamilyChecks chosen={draft.families} onChange={(families) => onChange({ families })} />
      <GuardNames value={draft.guards} onChange={(guards) => onChange({ guards })} error={errorOf(error, 'guards')} />
      <LimitRows rows={draft.limits} onChange={(limits) => onChange({ limits })} />
      <BudgetRows rows={draft.budgets} onChange={(budgets) => onChange({ budgets })} />
      <LimitRows of="end users" rows={draft.userLimits} onChange={(userLimits) => onChange({ userLimits })} />
      <BudgetRows of="end users" rows={draft.userBudgets} onChange={(userBudgets) => onChange({ userBudgets })} />
      <TextField
        label="Expires"
        type="datetime-local"
        help="In your time zone. Empty: never."
        value={draft.expires}
        onChange={(expires) => onChange({ expires })}
        error={errorOf(error, 'expires_at')}
      />
      <TextArea
        label="Allowed addresses"
        help="One address or network a line, such as 203.0.113.0/24. Empty: calls may come from anywhere."
        rows={2}
        value={draft.addresses}
        onChange={(addresses) => onChange({ addresses })}
        error={errorOf(error, 'allowed_addresses')}
      />
      <LabelField draft={draft} onChange={onChange} error={error} />
      <FormError error={error} fields={OWN_ERRORS} />
    </>
  )
}

export const LabelField = ({ draft, onChange, error }: FormProps) => (
  <TextArea
    label="Labels"
    help={
      <>
        One a line, such as team=search. They change nothing.
        {draft.importLabels.length > 0 && ` Kept as the import wrote them: ${draft.importLabels.join(', ')}.`}
      </>
    }
    rows={2}
    value={draft.labels}
    onChange={(labels) => onChange({ labels })}
    error={errorOf(error, 'labels')}
  />
)

type FamilyProps = { chosen: Draft['families']; onChange(families: Draft['families']): void }

function FamilyChecks({ chosen, onChange }: FamilyProps) {
  // Closed when the last one is unchecked, it would take the focus with it.
  const [isOpen, setOpen] = useState(chosen.length > 0)
  return (
    <fieldset className="access-rows">
      <legend className="field-label">Kinds of calls</legend>
      <details className="access-families" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary className="field-help">
          {chosen.length === 0 ? 'All. Choose some to refuse the others.' : 'Only those that are checked.'}
        </summary>
        <div className="access-checks">
          {CALL_FAMILIES.map((family) => (
            <Checkbox
              key={family}
              label={familyName(family)}
              checked={chosen.some((one) => one === family)}
              onChange={(checked) => {
                const others = chosen.filter((one) => one !== family)
                onChange(checked ? [...others, family as (typeof others)[number]] : others)
              }}
            />
          ))}
        </div>
      </details>
    </fieldset>
  )
}

function GuardNames(field: { value: string; onChange(value: string): void; error: string | undefined }) {
  const isOfAll = seesAll(useMe())
  const { data } = useApi('GET /admin/v1/guards', {}, { enabled: isOfAll })
  const names = data?.data.filter(({ kind }) => kind !== null).map(({ name }) => name) ?? []
  return (
    <TextArea
      {...field}
      label="Guards"
      help={
        <>
          One name a line: they check the contents of its calls, besides those of the model and of its project.
          {isOfAll && data && (names.length > 0 ? ` Configured: ${names.join(', ')}.` : ' None is configured.')}
        </>
      }
      rows={2}
    />
  )
}

const LIMIT_OPTIONS = LIMITS.map(([value, label]) => ({ value, label }))
const WINDOW_OPTIONS = WINDOWS.map(([value, label]) => ({ value, label }))
const COMMON_LIMITS: LimitName[] = ['requests_per_minute', 'tokens_per_minute', 'requests_per_day']

type RowsProps<Row> = {
  rows: Row[]
  onChange(rows: Row[]): void
  /** Given where they count for each end user alone. */
  of?: 'end users'
}
const USER_HELP = 'For each end user whom its calls name.'

const changed = <Row extends { key: number }>(rows: Row[], key: number, change: Partial<Row>): Row[] =>
  rows.map((row) => (row.key === key ? { ...row, ...change } : row))

function LimitRows({ rows, onChange, of }: RowsProps<LimitRow>) {
  const unused = [...COMMON_LIMITS, ...LIMITS.map(([name]) => name)].find(
    (name) => !rows.some(({ limit }) => limit === name),
  )
  return (
    <fieldset className="access-rows">
      <legend className="field-label">{of ? `Rate limits of ${of}` : 'Rate limits'}</legend>
      {of && <span className="field-help">{USER_HELP}</span>}
      {rows.map((row) => (
        <div key={row.key} className="access-row">
          <Combobox
            label="Limit"
            value={row.limit}
            options={LIMIT_OPTIONS.filter(
              ({ value }) => value === row.limit || !rows.some(({ limit }) => limit === value),
            )}
            onChange={(limit) => limit && onChange(changed(rows, row.key, { limit: limit as LimitName }))}
          />
          <TextField
            label="At most"
            inputMode="numeric"
            required
            pattern="[0-9]+"
            title="A whole number"
            value={row.amount}
            onChange={(amount) => onChange(changed(rows, row.key, { amount }))}
          />
          <IconButton
            icon="trash"
            label="Remove this limit"
            onClick={() => onChange(rows.filter(({ key }) => key !== row.key))}
          />
        </div>
      ))}
      {unused && (
        <Button
          size="small"
          icon="plus"
          onClick={() => onChange([...rows, { key: nextKey(), limit: unused, amount: '' }])}
        >
          {of ? `Add a rate limit of ${of}` : 'Add a rate limit'}
        </Button>
      )}
    </fieldset>
  )
}

function BudgetRows({ rows, onChange, of }: RowsProps<BudgetRow>) {
  return (
    <fieldset className="access-rows">
      <legend className="field-label">{of ? `Budgets of ${of}` : 'Budgets'}</legend>
      {rows.map((row) => (
        <div key={row.key} className="access-row">
          <TextField
            label="Amount"
            inputMode="decimal"
            required
            pattern="[0-9]+(\.[0-9]+)?"
            title="An amount such as 25 or 0.5"
            value={row.amount}
            onChange={(amount) => onChange(changed(rows, row.key, { amount }))}
          />
          <Select
            label="Window"
            value={row.window}
            options={WINDOW_OPTIONS}
            onChange={(window) => onChange(changed(rows, row.key, { window: window as BudgetRow['window'] }))}
          />
          <Checkbox
            label="Only warn"
            checked={row.isSoft}
            onChange={(isSoft) => onChange(changed(rows, row.key, { isSoft }))}
          />
          <IconButton
            icon="trash"
            label="Remove this budget"
            onClick={() => onChange(rows.filter(({ key }) => key !== row.key))}
          />
        </div>
      ))}
      <Button
        size="small"
        icon="plus"
        onClick={() => onChange([...rows, { key: nextKey(), amount: '', window: 'month', isSoft: false, stored: {} }])}
      >
        {of ? `Add a budget of ${of}` : 'Add a budget'}
      </Button>
    </fieldset>
  )
}
