/** A menu of acts that opens from a button. */
import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'
import { Icon, type IconName } from './icon.tsx'

export type Act = {
  label: string
  icon?: IconName
  kind?: 'danger'
  disabled?: boolean
  isOn?: boolean
  onClick(): void
}

type MenuProps = {
  /** The button that opens it. */
  button: ReactElement<Record<string, unknown>>
  /** Acts in groups. */
  groups: Act[][]
  head?: ReactNode
}

export function Menu({ button, groups, head }: MenuProps) {
  return (
    <Base.Root>
      <Base.Trigger render={button} />
      <Base.Portal>
        <Base.Positioner className="positioner" sideOffset={4} align="end">
          <Base.Popup className="popup">
            {head}
            {groups.map((acts, index) => (
              <Base.Group key={acts[0]?.label}>
                {index > 0 && <Base.Separator className="item-separator" />}
                {acts.map((act) => (
                  <MenuItem key={act.label} {...act} />
                ))}
              </Base.Group>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

function MenuItem({ label, icon, kind, disabled = false, isOn, onClick }: Act) {
  return (
    <Base.Item className="item" data-kind={kind} disabled={disabled} onClick={onClick}>
      {icon && <Icon name={icon} />}
      {label}
      {isOn && (
        <span className="item-end">
          <Icon name="check" />
          <span className="hidden-text">chosen</span>
        </span>
      )}
    </Base.Item>
  )
}
