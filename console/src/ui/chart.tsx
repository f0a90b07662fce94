/** A chart over time, with the same numbers as a table. What draws it is loaded with the first chart. */
import { type CSSProperties, lazy, Suspense, useState } from 'react'
import { time } from '../lib/format.ts'
import { Button } from './button.tsx'
import { type ChartProps, colourOf } from './chart-series.ts'

const Plot = lazy(() => import('./chart-plot.tsx').then(({ Plot: component }) => ({ default: component })))

export function Chart(props: ChartProps) {
  const { label, times, series, format, height = 200 } = props
  const [at, setAt] = useState<number | null>(null)
  const [isTable, setTable] = useState(false)
  return (
    <figure className="chart" aria-label={label}>
      <div className="row-between">
        <div className="chart-legend">
          {series.map(({ name, values }, index) => (
            <span
              key={name}
              className="chart-key"
              style={{ '--colour': `var(${colourOf(series, index)})` } as CSSProperties}
            >
              <i />
              <span className="cut">{name}</span>
              {at !== null && <b>{values[at] === null ? '–' : format(values[at] ?? 0)}</b>}
            </span>
          ))}
          {at !== null && <span className="faint">{time(times[at] ?? 0)}</span>}
        </div>
        <Button kind="plain" size="small" onClick={() => setTable(!isTable)} aria-pressed={isTable}>
          {isTable ? 'Show chart' : 'Show table'}
        </Button>
      </div>
      {isTable ? (
        <ChartTable {...props} />
      ) : (
        <div className="chart-plot" style={{ '--chart-height': `${height}px` } as CSSProperties} aria-hidden="true">
          <Suspense>
            <Plot {...props} height={height} onPoint={setAt} />
          </Suspense>
        </div>
      )}
    </figure>
  )
}

function ChartTable({ label, times, series, format }: ChartProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
    <section className="table-scroll" aria-label={`${label}, as a table`} tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((moment, index) => (
            <tr key={moment}>
              <td>{time(moment)}</td>
              {series.map(({ name, values }) => (
                <td key={name} className="number">
                  {values[index] === null || values[index] === undefined ? '–' : format(values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
