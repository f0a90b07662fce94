/** Writes lists of definitions in Markdown. */

export const code = (text: string): string => `\`${text}\``
export const codes = (texts: readonly string[]): string => texts.map(code).join(', ')

/** A list of rows with a name, what it is (in brackets, if anything) and its meaning; names with the same share a line. */
export const definitions = (rows: string[][]): string =>
  [...Map.groupBy(rows, ([, kind, meaning]) => `${kind} ${meaning}`).values()]
    .map((alike) => {
      const [, kind = '', meaning = ''] = alike[0] ?? []
      const names = alike.map(([name]) => name).join(', ')
      const before = kind === '' ? names : `${names} (${kind})`
      return `- ${before}${meaning === '' ? '' : `: ${meaning.replaceAll(/<(?!https?:)/g, '\\<')}`}`
    })
    .join('\n')
