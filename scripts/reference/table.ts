/** Writes tables and lists of definitions in Markdown. */

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ').trim()

export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(cell).join(' | ')} |`.replaceAll('|  |', '| |')
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

export const code = (text: string): string => `\`${text}\``
export const codes = (texts: readonly string[]): string => texts.map(code).join(', ')

/** A list of rows with a name, what it is (in brackets, if anything) and its meaning. */
export const definitions = (rows: string[][]): string =>
  rows
    .map(([name = '', kind = '', meaning = '']) => {
      const before = kind === '' ? name : `${name} (${kind})`
      return `- ${before}${meaning === '' ? '' : `: ${meaning.replaceAll('<', '\\<')}`}`
    })
    .join('\n')
