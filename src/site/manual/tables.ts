/** Prepares the tables of a page for screens of any width. */

/** A wide table scrolls; each cell has the heading of its column, which a narrow screen shows beside it. */
export const withTables = (html: string): string =>
  html.replaceAll(/<table>[\s\S]*?<\/table>/g, (table) => `<div class="scroll">${withLabels(table)}</div>`)

function withLabels(table: string): string {
  const labels = [...table.matchAll(/<th\b[^>]*>([\s\S]*?)<\/th>/g)].map(([, heading = '']) => textOf(heading))
  return table.replaceAll(/<tr>[\s\S]*?<\/tr>/g, (row) => {
    let column = 0
    return row.replaceAll(/<td\b/g, (cell) => `${cell} data-label="${labels[column++] ?? ''}"`)
  })
}

const textOf = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('"', '&quot;')
    .trim()
