/** Markdown tables. */

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ').trim()

export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(cell).join(' | ')} |`.replaceAll('|  |', '| |')
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

export const code = (text: string): string => `\`${text}\``
export const codes = (texts: readonly string[]): string => texts.map(code).join(', ')
