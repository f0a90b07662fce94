/** The series of a chart, and their colours. */
export type Series = { name: string; values: (number | null)[]; isPrevious?: boolean }

export type ChartProps = {
  /** Its name for screen readers. */
  label: string
  /** Unix seconds, one for each value. */
  times: number[]
  series: Series[]
  format(value: number): string
  /** `stack`: areas on top of each other, for parts of a whole. */
  kind?: 'line' | 'stack' | 'bars'
  height?: number
  /** Called with the range that was selected by dragging. */
  onSelect?(range: { from: number; to: number }): void
}

/** Which of the eight colours a series has: `--series-1` and so on. */
export const colourOf = (series: Series[], index: number): string =>
  series[index]?.isPrevious ? '--series-previous' : `--series-${(index % 8) + 1}`
