/** Splits a page of the manual into its sections, as plain text. */
import type { Heading } from '../../kit/markdown.ts'

export type IndexedPage = { name: string; title: string; text: string; headings: Heading[] }
export type Section = { page: string; title: string; heading: string; anchor: string; text: string }

export function sectionsOf({ name, title, text, headings }: IndexedPage): Section[] {
  const blocks = blocksOf(text)
  return headings.map(({ text: heading, anchor }, at) => ({
    page: name,
    title,
    heading,
    anchor: at === 0 ? '' : anchor,
    text: plain(blocks[at + 1] ?? ''),
  }))
}

/** The text before the first heading, then the text below each heading; `#` in a code block is no heading. */
function blocksOf(text: string): string[] {
  const blocks: string[] = ['']
  let fenced = false
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) fenced = !fenced
    if (!fenced && /^#{1,6} /.test(line)) blocks.push('')
    else blocks[blocks.length - 1] += `${line}\n`
  }
  return blocks
}

const plain = (markdown: string): string =>
  markdown
    .replace(/^<!--[\s\S]*?-->$/gm, '')
    .replace(/^```.*$|^\|[-|]+$/gm, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*|\\]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
