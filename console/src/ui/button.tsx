/** Buttons, and links that look like them. */
import { Link } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { isKnownPath } from '../lib/known-paths.ts'
import { Icon, type IconName } from './icon.tsx'
import { Tooltip } from './tooltip.tsx'

type Look = { kind?: 'primary' | 'danger' | 'plain'; size?: 'small'; icon?: IconName }

type ButtonProps = Omit<ComponentProps<'button'>, 'className'> & Look & { isBusy?: boolean }

export function Button({ kind, size, icon, isBusy = false, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className="button"
      data-kind={kind}
      data-size={size}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

type IconButtonProps = Omit<ComponentProps<'button'>, 'className' | 'children'> &
  Omit<Look, 'icon'> & {
    icon: IconName
    /** Its name for screen readers, and its tooltip. */
    label: string
  }

export function IconButton({ icon, label, kind = 'plain', size, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button type="button" {...rest} className="button" data-icon data-kind={kind} data-size={size} aria-label={label}>
        <Icon name={icon} />
      </button>
    </Tooltip>
  )
}

type LinkProps = { to: string; search?: Record<string, unknown>; children: ReactNode; className?: string }

/** A link to another page of the console: `to` is a path below /console. Text where there is no such page. */
export function A({ to, search = {}, ...rest }: LinkProps & Pick<ComponentProps<'a'>, 'title' | 'aria-current'>) {
  if (!isKnownPath(to)) return <span className={rest.className}>{rest.children}</span>
  return <Link to={to as never} search={search as never} {...rest} />
}

/** Nothing where there is no such page. */
export function ButtonLink({ to, search = {}, kind, size, icon, children }: LinkProps & Look) {
  if (!isKnownPath(to)) return null
  return (
    <Link to={to as never} search={search as never} className="button" data-kind={kind} data-size={size}>
      {icon && <Icon name={icon} />}
      {children}
    </Link>
  )
}
