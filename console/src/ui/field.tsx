/** Fields of forms: a label, a control, help, and the error of what was typed. */
import { type ComponentProps, type ReactNode, useId } from 'react'
import { ApiError } from '../api/client.ts'

type FieldParts = { label: string; help?: ReactNode; error?: string | undefined }

type ControlProps = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': true | undefined }

/** Any control with a label: `children` makes it from the attributes that connect the two. */
export function Field({ label, help, error, children }: FieldParts & { children(props: ControlProps): ReactNode }) {
  const id = useId()
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error ? true : undefined })}
      {help && (
        <span className="field-help" id={`${id}-help`}>
          {help}
        </span>
      )}
      {error && (
        <span className="field-error" id={`${id}-error`} role="alert">
          {error}
        </span>
      )}
    </div>
  )
}

type TextProps = Omit<ComponentProps<'input'>, 'className' | 'onChange'> &
  FieldParts & { onChange(value: string): void }

export function TextField({ label, help, error, onChange, ...rest }: TextProps) {
  return (
    <Field label={label} help={help} error={error}>
      {(control) => (
        <input
          autoComplete="off"
          spellCheck={false}
          {...rest}
          {...control}
          className="input"
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

type AreaProps = Omit<ComponentProps<'textarea'>, 'className' | 'onChange'> &
  FieldParts & { onChange(value: string): void }

export function TextArea({ label, help, error, onChange, ...rest }: AreaProps) {
  return (
    <Field label={label} help={help} error={error}>
      {(control) => (
        <textarea {...rest} {...control} className="input" onChange={(event) => onChange(event.target.value)} />
      )}
    </Field>
  )
}

type CheckProps = { label: ReactNode; checked: boolean; onChange(checked: boolean): void; disabled?: boolean }

export function Checkbox({ label, checked, onChange, disabled }: CheckProps) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>{label}</span>
    </label>
  )
}

/** The error of a form that belongs to none of its fields. `fields`: those that show their own. */
export function FormError({ error, fields = [] }: { error: Error | null | undefined; fields?: string[] }) {
  if (!error || fields.some((field) => isOf(error, field))) return null
  return (
    <p className="form-error" role="alert">
      {error.message}
    </p>
  )
}

/** The error of a field, where the gateway named it. */
export const errorOf = (error: Error | null | undefined, field: string): string | undefined =>
  isOf(error, field) ? error?.message : undefined

/** Also of a value within it, such as `models[0]`. */
const isOf = (error: Error | null | undefined, field: string): boolean => paramOf(error)?.split(/[.[]/, 1)[0] === field

const paramOf = (error: Error | null | undefined) => (error instanceof ApiError ? error.param : undefined)
