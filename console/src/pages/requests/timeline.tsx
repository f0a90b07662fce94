/** The waterfall of a request: its attempts and its response on one axis of time. */
import { type CSSProperties, useMemo } from 'react'
import type { Request } from '../../api/types.ts'
import { duration } from '../../lib/format.ts'
import { type Bar, type BarKind, layOut } from './waterfall.ts'

const WHAT: Record<BarKind, string> = {
  wait: 'waiting',
  served: 'answered',
  failed: 'failed',
  lost: 'given up',
  response: 'response',
}

export function Timeline({ request }: { request: Request }) {
  const { bars, ticks, total_ms, isEstimated } = useMemo(() => layOut(request), [request])
  return (
    <div className="waterfall">
      <ol className="waterfall-rows">
        {bars.map((bar) => (
          <li key={`${bar.kind} ${bar.attempt}`} className="waterfall-row">
            <span className="waterfall-name wrap">{bar.label}</span>
            <span className="waterfall-track" aria-hidden="true">
              <span className="waterfall-bar" data-kind={bar.kind} style={styleOf(bar)} />
            </span>
            <span className="waterfall-time">
              {duration(bar.ms)}
              <span className="hidden-text">
                , {WHAT[bar.kind]}, from {duration(bar.start_ms)} on
              </span>
            </span>
          </li>
        ))}
      </ol>
      <div className="waterfall-axis" aria-hidden="true">
        <span className="waterfall-ticks">
          {ticks.map((tick) => (
            <span
              key={tick}
              className="waterfall-tick"
              style={{ '--from': `${total_ms > 0 ? (tick / total_ms) * 100 : 0}%` } as CSSProperties}
            >
              {duration(tick)}
            </span>
          ))}
        </span>
      </div>
      {isEstimated && (
        <p className="faint small">
          The log of that time does not have the start of each attempt: they are drawn in order.
        </p>
      )}
    </div>
  )
}

const styleOf = ({ from, width }: Bar) =>
  ({ '--from': `${from * 100}%`, '--width': `${width * 100}%` }) as CSSProperties
