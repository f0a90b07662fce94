/** Tabs of one page, and a row of buttons of which one is pressed. */
import { Tabs as Base } from '@base-ui/react/tabs'
import type { ReactNode } from 'react'

type Tab = { value: string; label: ReactNode; content: ReactNode }

/** `value`: usually from the address, so that a tab has one. */
export function Tabs({ value, tabs, onChange }: { value: string; tabs: Tab[]; onChange(value: string): void }) {
  return (
    <Base.Root value={value} onValueChange={(chosen) => onChange(String(chosen))}>
      <Base.List className="tabs-list">
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className="tab">
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.value} value={tab.value} className="tab-panel">
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  )
}

type SegmentProps = {
  label: string
  value: string
  options: { value: string; label: string }[]
  onChange(value: string): void
}

export function Segments({ label, value, options, onChange }: SegmentProps) {
  return (
    <fieldset className="segments" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          className="segment"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  )
}
