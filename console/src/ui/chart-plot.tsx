/** Draws a chart with uPlot on a canvas, in the colours of the scheme, as wide as its place. */
import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import { onThemeChange } from '../lib/theme.ts'
import { type ChartProps, colourOf } from './chart-series.ts'

type PlotProps = ChartProps & { height: number; onPoint(index: number | null): void }

export function Plot({ times, series, format, kind = 'line', height, onPoint, onSelect }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const [scheme, setScheme] = useState(0)
  const handlers = useRef({ onPoint, onSelect })
  handlers.current = { onPoint, onSelect }
  useEffect(() => onThemeChange(() => setScheme((former) => former + 1)), [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the scheme draws it anew
  useEffect(() => {
    const element = place.current
    if (!element) return undefined
    const style = getComputedStyle(element)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const drawn = kind === 'stack' ? stacked(series.map(({ values }) => values)) : series.map(({ values }) => values)
    const axis: uPlot.Axis = {
      stroke: colour('--text-faint'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
      font: `11px ${colour('--font')}`,
    }
    // The first and the last bar are as wide as the others.
    const edge = kind === 'bars' ? ((times[1] ?? 0) - (times[0] ?? 0)) / 2 : 0
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        padding: [8, 32, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 7 }, drag: { x: onSelect !== undefined, y: false, setScale: false } },
        select: { show: onSelect !== undefined, left: 0, top: 0, width: 0, height: 0 },
        scales: {
          x: { time: true, ...(edge > 0 && { range: (_, min, max) => [min - edge, max + edge] }) },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 30,
            space: 75,
            values: (_, ticks, __, ___, step) => timeTicks(ticks, step),
          },
          {
            ...axis,
            size: 58,
            // Where parts of one look alike, as with calls, a step between two lines is a whole number.
            ...(format(0.25) === format(0.3) && { incrs: WHOLE_STEPS }),
            values: (_, ticks) => onceEach(ticks.map((tick) => (tick === null ? '' : format(tick)))),
          },
        ],
        series: [
          {},
          ...series.map(({ isPrevious }, index): uPlot.Series => {
            const stroke = colour(colourOf(series, index))
            const hasArea = !isPrevious && (kind !== 'line' || series.filter((one) => !one.isPrevious).length === 1)
            return {
              stroke,
              width: isPrevious ? 1.25 : 1.75,
              points: { show: true, size: 5, fill: stroke, filter: (self, at) => lonely(self.data[at] ?? []) },
              spanGaps: false,
              ...(isPrevious && { dash: [4, 4] }),
              ...(hasArea && { fill: transparent(stroke, kind === 'line' ? 0.08 : 0.55) }),
              ...(kind === 'bars' && uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.7, 48] }) }),
            }
          }),
        ],
        hooks: {
          setCursor: [({ cursor }) => handlers.current.onPoint(cursor.idx ?? null)],
          setSelect: [
            (self) => {
              if (self.select.width < 4) return
              const from = Math.floor(self.posToVal(self.select.left, 'x'))
              const to = Math.ceil(self.posToVal(self.select.left + self.select.width, 'x'))
              handlers.current.onSelect?.({ from, to })
            },
          ],
        },
      },
      [times, ...drawn] as uPlot.AlignedData,
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [times, series, kind, height, format, scheme, onSelect !== undefined])

  return <div ref={place} />
}

const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat()
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const calendar = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const DAY_SECONDS = 86_400

/** Times of a day, with the date at midnight; dates where the steps are days. */
function timeTicks(ticks: number[], step: number): string[] {
  return ticks.map((tick) => {
    const date = new Date(tick * 1000)
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0
    return (step >= DAY_SECONDS || isMidnight ? calendar : clock).format(date)
  })
}

/** Whole numbers would stand twice where the steps are smaller. */
const onceEach = (texts: string[]): string[] => texts.map((text, index) => (text === texts[index - 1] ? '' : text))

/** The places of values without neighbours, which a line would not show. */
function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const has = (index: number) => values[index] !== null && values[index] !== undefined
  return Array.from({ length: values.length }, (_, index) => index).filter(
    (index) => has(index) && !has(index - 1) && !has(index + 1),
  )
}

/** Each series on top of those after it, so that the first is drawn first and stays visible behind none. */
function stacked(all: (number | null)[][]): (number | null)[][] {
  const sums: number[] = []
  return all
    .toReversed()
    .map((values) =>
      values.map((value, index) => {
        const sum = (sums[index] ?? 0) + (value ?? 0)
        sums[index] = sum
        return sum
      }),
    )
    .toReversed()
}

/** `#rrggbb` with an opacity. */
const transparent = (colour: string, opacity: number): string =>
  `${colour}${Math.round(opacity * 255)
    .toString(16)
    .padStart(2, '0')}`
