/** The four parts of the manual, and its pages in them. */
import type { ManualFile } from './load-manual.ts'

const PARTS: { folder: string; title: string }[] = [
  { folder: 'tutorials', title: 'Tutorials' },
  { folder: 'how-to', title: 'How-to guides' },
  { folder: 'reference', title: 'Reference' },
  { folder: 'explanation', title: 'Explanation' },
]
const OTHER = 'More'

export type ManualPage = ManualFile & {
  title: string
  /** The first sentence below it. */
  summary: string
}
export type ManualPart = { title: string; pages: ManualPage[] }

/** Omits parts without pages; sorts the pages of a part by title. */
export function manualParts(files: readonly ManualFile[]): ManualPart[] {
  const pages = files.map(pageOf).sort((one, other) => one.title.localeCompare(other.title, 'en'))
  const known = new Set(PARTS.map(({ folder }) => folder))
  const parts = PARTS.map(({ folder, title }) => ({ title, pages: pages.filter((page) => page.folder === folder) }))
  const others = { title: OTHER, pages: pages.filter(({ folder }) => !known.has(folder)) }
  return [...parts, others].filter((part) => part.pages.length > 0)
}

function pageOf(file: ManualFile): ManualPage {
  const body = file.text.replace(/^<!--[\s\S]*?-->$/gm, '')
  const title = /^# +(.+)$/m.exec(body)?.[1] ?? file.name
  const opening = /^# .+\n+([^#|\n-][\s\S]*?)\n(?:\n|$(?![\s\S]))/m.exec(body)?.[1] ?? ''
  const [sentence = ''] = opening.replaceAll('\n', ' ').split(/(?<=[.:])\s+(?=[\p{Lu}`"(])/u)
  return { ...file, title, summary: sentence.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/:$/, '.') }
}
