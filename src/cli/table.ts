/** Formats rows of text in columns. */
import { bold, type Terminal } from './terminal.ts'

/** Columns are as wide as their longest cell; lines have no trailing spaces. */
export function table(rows: string[][]): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  }
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

export function headedTable(head: string[], rows: string[][], terminal: Terminal): string {
  const [first = '', ...rest] = table([head, ...rows]).split('\n')
  return [bold(terminal, first), ...rest].join('\n')
}

/** `2026-11-21 04:05`, in UTC; a dash for no time. */
export const timeText = (seconds: number | null | undefined): string =>
  seconds === null || seconds === undefined
    ? '-'
    : new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')
