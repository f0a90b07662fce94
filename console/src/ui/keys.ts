/** Keys of a page, which work where nobody types and no dialog or menu is open. */
import { useEffect, useRef } from 'react'

const ELSEWHERE = 'input, textarea, select, pre, [role=dialog], [role=alertdialog], [role=menu], [role=listbox]'

/** What each key does, by its name as events have it; undefined: nothing now. */
export function useKeys(keys: Readonly<Record<string, (() => void) | undefined>>): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isElsewhere = event.target instanceof Element && event.target.closest(ELSEWHERE)
      if (isElsewhere || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      latest.current[event.key]?.()
    }
    window.addEventListener('keydown', listen)
    return () => window.removeEventListener('keydown', listen)
  }, [])
}
