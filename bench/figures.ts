/** Small sums over measurements. */

/** The value below which `percent` of the numbers lie; NaN when there are none. */
export function percentile(numbers: number[], percent: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN
}

export function median(numbers: number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Three significant figures, thousands set apart: what a measurement on a shared machine is worth. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const rounded = Number(value.toPrecision(3))
  return Math.abs(rounded) >= 1000 ? rounded.toLocaleString('en-US') : String(rounded)
}
