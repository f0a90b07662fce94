/** A short text beside what the pointer or the focus is on. */
import { Tooltip as Base } from '@base-ui/react/tooltip'
import type { ReactElement } from 'react'

export function Tooltip({ text, children }: { text: string; children: ReactElement<Record<string, unknown>> }) {
  return (
    <Base.Root>
      <Base.Trigger render={children} />
      <Base.Portal>
        <Base.Positioner className="positioner" sideOffset={6}>
          <Base.Popup className="tooltip">{text}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
