/** Requests while they end: the newest first, drawn a few times a second at most, with a button that holds it still. */
import { memo, useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { followEvents } from '../../api/events.ts'
import { clock, count } from '../../lib/format.ts'
import { A, Button } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { useKeys } from '../../ui/keys.ts'
import { Empty, Failed } from '../../ui/states.tsx'
import { followArrows } from '../../ui/table.tsx'
import { Duration, Money } from '../../ui/values.tsx'
import { Caller, labelOf, type Names, type RequestRow, Status, Subject, Tokens } from './columns.tsx'
import type { FilterValues } from './filters.ts'
import { LiveRows, type LiveState } from './live-rows.ts'
import { useProjectNames } from './names.ts'

/** Nobody reads faster, and the browser has other things to do. */
const DRAW_MILLISECONDS = 250
const DRAWN_ROWS = 60
/** Of each fifth of a second: what is left out of more is in the search, and costs neither side anything. */
const NEWEST_ROWS = 10

export function LiveTail({ filters }: { filters: FilterValues }) {
  const [isPaused, setPaused] = useState(false)
  const { state, isConnected, error, retry } = useLiveRows(filters, isPaused)
  const nameOf = useProjectNames()
  useKeys({ p: () => setPaused(!isPaused) })
  if (error)
    return (
      <div className="table-frame">
        <Failed error={error} onRetry={retry} />
      </div>
    )
  return (
    <div className="stack-small">
      <div className="row-between">
        <div className="row" role="status">
          {isPaused ? (
            <Badge tone="warn" icon="pause">
              Paused
            </Badge>
          ) : isConnected ? (
            <Badge tone="ok">Live</Badge>
          ) : (
            <Badge>Connecting…</Badge>
          )}
          {isPaused && state.waiting > 0 && <span className="soft">{count(state.waiting)} new</span>}
          {state.dropped > 0 && (
            <span className="soft">{count(state.dropped)} came too fast and are only in the search</span>
          )}
        </div>
        <Button
          icon={isPaused ? 'play' : 'pause'}
          onClick={() => setPaused(!isPaused)}
          title={isPaused ? 'Resume (p)' : 'Pause (p)'}
        >
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
      </div>
      {state.rows.length === 0 ? (
        <div className="table-frame">
          <Empty title="Waiting for requests" icon="clock">
            A request appears here when it ends. Earlier ones are in the search.
          </Empty>
        </div>
      ) : (
        <LiveTable state={state} nameOf={nameOf} />
      )}
    </div>
  )
}

function LiveTable({ state, nameOf }: { state: LiveState<RequestRow>; nameOf: Names }) {
  const shown = state.rows.slice(0, DRAWN_ROWS)
  return (
    <div className="table-frame requests-list">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <section className="table-scroll" aria-label="Live requests" tabIndex={0} onKeyDown={followArrows}>
        <table className="table live-table" aria-label="Live requests">
          <thead>
            <tr>
              {['Time', 'Status', 'Model'].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
              {['Duration', 'Tokens', 'Cost'].map((head) => (
                <th key={head} scope="col" className="number">
                  {head}
                </th>
              ))}
              <th scope="col">Project</th>
              <th scope="col">Provider</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ key, row }) => (
              <LiveRow key={key} row={row} project={row.project_id === null ? null : nameOf(row.project_id)} />
            ))}
          </tbody>
        </table>
      </section>
      <div className="table-foot">
        <span>
          The newest {count(shown.length)} of {count(state.seen)} since this page was opened
        </span>
      </div>
    </div>
  )
}

/** Drawn once: what it shows does not change. */
const LiveRow = memo(function LiveRow({ row, project }: { row: RequestRow; project: string | null }) {
  const { request_id, created_at, at_ms } = row
  return (
    <tr data-link="">
      <td>
        <A to="/requests/find" search={{ request_id, at: created_at }} className="row-link" aria-label={labelOf(row)}>
          {clock(at_ms / 1000)}
        </A>
      </td>
      <td>
        <Status row={row} />
      </td>
      <td>
        <Subject row={row} />
      </td>
      <td className="number">
        <Duration ms={row.total_ms} />
      </td>
      <td className="number">
        <Tokens row={row} />
      </td>
      <td className="number">
        <Money value={row.cost} />
      </td>
      <td>
        <Caller row={row} nameOf={(id) => project ?? id} />
      </td>
      <td>{row.provider}</td>
    </tr>
  )
})

function useLiveRows(filters: FilterValues, isPaused: boolean) {
  const rows = useRef<LiveRows<RequestRow>>(null)
  rows.current ??= new LiveRows<RequestRow>(filters)
  const paused = useRef(isPaused)
  const [state, setState] = useState<LiveState<RequestRow>>(() => ({ rows: [], waiting: 0, seen: 0, dropped: 0 }))
  const [isConnected, setConnected] = useState(false)
  const [error, setError] = useState<Error>()
  const [tries, setTries] = useState(0)

  useEffect(() => {
    paused.current = isPaused
    if (rows.current) setState(rows.current.take({ isPaused }))
  }, [isPaused])

  // biome-ignore lint/correctness/useExhaustiveDependencies: another try connects again
  useEffect(() => {
    const control = new AbortController()
    const draw = drawingAtMost(() => {
      if (rows.current) setState(rows.current.take({ isPaused: paused.current }))
    }, control.signal)
    // With filters, rows are chosen here among all.
    const bound = Object.values(filters).some(Boolean) ? '' : `&newest=${NEWEST_ROWS}`
    followEvents(`/admin/v1/events?types=request${bound}`, {
      signal: control.signal,
      onState: ({ connected }) => setConnected(connected),
      onEvent({ event, data }) {
        const { data: row } = JSON.parse(data) as { data: RequestRow & { events: number } }
        if (event === 'dropped') rows.current?.lose(row.events)
        else if (event !== 'request' || !rows.current?.add(row)) return
        draw()
      },
    }).catch((fault: unknown) => {
      if (!control.signal.aborted) setError(fault instanceof Error ? fault : new ApiError(UNKNOWN_FAULT))
    })
    return () => control.abort()
  }, [tries])

  const retry = () => {
    setError(undefined)
    setTries((former) => former + 1)
  }
  return { state, isConnected, error, retry }
}

const UNKNOWN_FAULT = {
  status: 0,
  code: 'unknown',
  message: 'The stream of events ended.',
  param: undefined,
  request_id: undefined,
}

/** Draws in the next frame, but not more often than every so many milliseconds. */
function drawingAtMost(draw: () => void, signal: AbortSignal): () => void {
  let drawn_at = Number.NEGATIVE_INFINITY
  let isPlanned = false
  const frame = () =>
    requestAnimationFrame(() => {
      isPlanned = false
      drawn_at = performance.now()
      if (!signal.aborted) draw()
    })
  return () => {
    if (isPlanned) return
    isPlanned = true
    const wait = drawn_at + DRAW_MILLISECONDS - performance.now()
    if (wait <= 0) frame()
    else setTimeout(frame, wait)
  }
}
