/** Writes lists of definitions in Markdown. */

export const code = (text: string): string => `\`${text}\``
export const codes = (texts: readonly string[]): string => texts.map(code).join(', ')

/** A list of rows with a name, what it is (in brackets, if anything) and its meaning. */
export const definitions = (rows: string[][]): string =>
  rows
    .map(([name = '', kind = '', meaning = '']) => {
      const before = kind === '' ? name : `${name} (${kind})`
      return `- ${before}${meaning === '' ? '' : `: ${meaning.replaceAll(/<(?!https?:)/g, '\\<')}`}`
    })
    .join('\n')
