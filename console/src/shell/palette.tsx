/** The palette of Ctrl-K: finds pages, and the objects that pages know by name or id. */
import { Dialog } from '@base-ui/react/dialog'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { Icon } from '../ui/icon.tsx'
import { useNavPages } from './navigation.tsx'
import type { Found, Page } from './page.ts'
import { usePages } from './registry.ts'

const DEBOUNCE_MILLISECONDS = 150
const MOST_FOUND = 40

/** Opened by Ctrl-K, or by `/` outside of fields. */
export function usePaletteKey(open: () => void): void {
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest('input, textarea, [contenteditable]')
      const isKey = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k'
      if (!isKey && (event.key !== '/' || isTyping)) return
      event.preventDefault()
      open()
    }
    window.addEventListener('keydown', listen)
    return () => window.removeEventListener('keydown', listen)
  }, [open])
}

export function Palette({ open, onClose }: { open: boolean; onClose(): void }) {
  return (
    <Dialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="palette" aria-label="Find">
          <PaletteContent onClose={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function PaletteContent({ onClose }: { onClose(): void }) {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const { found, isSearching } = useFound(text.trim())
  const navigate = useNavigate()
  const id = useId()
  const at = Math.min(chosen, found.length - 1)

  const open = (item: Found) => {
    onClose()
    void navigate({ to: item.to, search: item.search ?? {} } as never)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && found.length > 0) {
      event.preventDefault()
      const next = (at + step + found.length) % found.length
      setChosen(next)
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' })
    }
    const item = found[at]
    if (event.key === 'Enter' && item) {
      event.preventDefault()
      open(item)
    }
  }

  return (
    <>
      <input
        className="palette-input"
        role="combobox"
        aria-label="Find a page, model, token, request or task"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length > 0 ? `${id}-${at}` : undefined}
        placeholder="Find a page, model, token, request or task"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setChosen(0)
        }}
        onKeyDown={onKeyDown}
      />
      <div className="palette-list" id={`${id}-list`} role="listbox" aria-label="Found">
        {found.map((item, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field above keeps the focus, as a combobox does
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
          <div
            key={`${item.to} ${item.label} ${JSON.stringify(item.search)}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            data-active={index === at ? '' : undefined}
            className="item"
            onClick={() => open(item)}
            onMouseMove={() => setChosen(index)}
          >
            <Icon name={item.icon} />
            <span className="wrap">{item.label}</span>
            {item.note && <span className="item-end">{item.note}</span>}
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <p className="palette-note" role="status">
          {isSearching ? 'Searching…' : 'Nothing has this name or id.'}
        </p>
      )}
    </>
  )
}

/** What fits the text: pages at once, objects when the typing stops. */
function useFound(text: string): { found: Found[]; isSearching: boolean } {
  const pages = usePages()
  const shown = useNavPages()
  const [objects, setObjects] = useState<Found[]>([])
  const [isSearching, setSearching] = useState(false)
  useEffect(() => {
    setObjects([])
    if (text.length < 2) return undefined
    const control = new AbortController()
    setSearching(true)
    const timer = setTimeout(async () => {
      const all = await Promise.allSettled(pages.map(async ({ find }) => find?.(text, control.signal) ?? []))
      if (control.signal.aborted) return
      setObjects(all.flatMap((one) => (one.status === 'fulfilled' ? one.value : [])))
      setSearching(false)
    }, DEBOUNCE_MILLISECONDS)
    return () => {
      clearTimeout(timer)
      control.abort()
      setSearching(false)
    }
  }, [text, pages])
  const fitting = shown.filter(({ title }) => title.toLowerCase().includes(text.toLowerCase())).map(asFound)
  return { found: [...fitting, ...objects].slice(0, MOST_FOUND), isSearching }
}

const asFound = ({ title, path, nav }: Page): Found => ({
  label: title,
  note: 'Page',
  to: path,
  icon: nav?.icon ?? 'list',
})
