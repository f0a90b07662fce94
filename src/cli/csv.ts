/** Comma-separated values (RFC 4180): written for spreadsheets, and read from the exports of providers. */

const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i

/** A cell that a spreadsheet would run as a formula starts with an apostrophe: clients choose the names of end users. */
const cellText = (cell: string): string => {
  const safe = /^[=+\-@\t\r\n]/.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export const csv = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(cellText).join(',')}\n`).join('')

/** Rows of cells; empty lines are skipped. Separated by commas, or by semicolons where the first line has no comma. */
export function readCsv(text: string): string[][] {
  const source = text.replace(/^\ufeff/, '')
  const [head = ''] = source.split('\n', 1)
  const separator = !head.includes(',') && head.includes(';') ? ';' : ','
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let isQuoted = false
  const endRow = () => {
    row.push(cell)
    if (row.length > 1 || cell !== '') rows.push(row)
    row = []
    cell = ''
  }
  for (let at = 0; at < source.length; at++) {
    const sign = source[at] ?? ''
    if (isQuoted) {
      if (sign !== '"') cell += sign
      else if (source[at + 1] === '"') cell += source[++at]
      else isQuoted = false
    } else if (sign === '"' && cell === '') isQuoted = true
    else if (sign === separator) {
      row.push(cell)
      cell = ''
    } else if (sign === '\n') endRow()
    else if (sign !== '\r') cell += sign
  }
  if (cell !== '' || row.length > 0) endRow()
  return rows
}
