/** The manual beside a page: the page of it that fits, in a panel that stays open while one works. */
import { useQuery } from '@tanstack/react-query'
import { useRouterState } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { IconButton } from '../ui/button.tsx'
import { Failed, Loading } from '../ui/states.tsx'
import { manualPageOf } from './manual-pages.ts'
import { manualContent } from './manual-text.tsx'

export function ManualPanel({ onClose }: { onClose(): void }) {
  const path = useRouterState({ select: ({ location }) => location.pathname })
  // Another page of the console shows its own page of the manual.
  return <Panel key={manualPageOf(path)} first={manualPageOf(path)} onClose={onClose} />
}

function Panel({ first, onClose }: { first: string; onClose(): void }) {
  const [name, setName] = useState(first)
  const panel = useRef<HTMLElement>(null)
  const { data, error, refetch } = useQuery({
    queryKey: ['manual', name],
    queryFn: ({ signal }) => readManual(name, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })
  useEffect(() => {
    panel.current?.focus({ preventScroll: true })
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page begins at its start
  useEffect(() => {
    panel.current?.scrollTo(0, 0)
  }, [name])
  return (
    <aside
      ref={panel}
      className="manual-panel"
      aria-label="Manual"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.stopPropagation()
        onClose()
      }}
    >
      <div className="row-between manual-head">
        <a href={`/manual/${name}`} target="_blank" rel="noreferrer noopener" className="small">
          Open in a tab
        </a>
        <IconButton icon="close" label="Close the manual" onClick={onClose} />
      </div>
      {error ? (
        <Failed error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading lines={8} />
      ) : (
        <div className="manual-text">{manualContent(data, { onPage: setName })}</div>
      )}
    </aside>
  )
}

async function readManual(name: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(`/manual/${name}`, { signal, headers: { accept: 'text/html' } })
  if (!response.ok) throw new Error(`This gateway has no page of the manual named ${name}.`)
  return response.text()
}
