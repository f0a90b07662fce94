/** The manual as the gateway serves it: pages in HTML and Markdown, search, and the list for agents. Loaded on first use. */
import { renderMarkdown } from '../../kit/markdown.ts'
import type { ManualFile } from './load-manual.ts'
import { indexContent, type Layout, manualHtml, searchContent } from './manual-page.ts'
import { type ManualPage, type ManualPart, manualParts } from './parts.ts'
import { createManualSearch, type ManualSearch } from './search.ts'
import { withTables } from './tables.ts'

type LayoutBase = Pick<Layout, 'version' | 'nonce'>

export type Manual = {
  index(base: LayoutBase): string
  /** Undefined if the page does not exist. */
  page(name: string, base: LayoutBase): string | undefined
  markdown(name: string): string | undefined
  search(query: string, base: LayoutBase): string
  /** Every page with its address, as llmstxt.org describes it. */
  list(): string
}

export function createManual(files: readonly ManualFile[]): Manual {
  const parts = manualParts(files)
  const pages = new Map(parts.flatMap((part) => part.pages.map((page) => [page.name, page] as const)))
  const render = (text: string) => renderMarkdown(text, { link: (href) => addressOf(href, pages), image: imageOf })
  let search: ManualSearch | undefined

  const indexed = () =>
    [...pages.values()].map(({ name, title, text }) => ({ name, title, text, headings: render(text).headings }))

  return {
    index: (base) => manualHtml({ ...base, title: 'Contents', parts, content: indexContent(parts) }),
    page(name, base) {
      const page = pages.get(name)
      if (!page) return undefined
      const { html, headings } = render(page.text)
      return manualHtml({ ...base, title: page.title, parts, content: withTables(html), current: { name, headings } })
    },
    markdown: (name) => pages.get(name)?.text,
    search(query, base) {
      search ??= createManualSearch(indexed())
      const content = searchContent(query, search(query))
      return manualHtml({ ...base, title: 'Search', parts, content, query })
    },
    list: () => listOf(parts),
  }
}

/** The address of a link: pages by name, other sites unchanged; other files of the project have none. */
function addressOf(href: string, pages: ReadonlyMap<string, ManualPage>): string | undefined {
  if (/^(https?:\/\/|#|\/(?!\/))/.test(href)) return href
  const [, name = '', anchor = ''] = /([^/#]+)\.md(#.*)?$/.exec(href) ?? []
  return pages.has(name) ? `/manual/${name}${anchor}` : undefined
}

/** A picture of the manual itself. */
function imageOf(src: string): string | undefined {
  const [, name] = /(?:^|\/)images\/([\w-]+\.png)$/.exec(src) ?? []
  return name && !/^\w+:|^\/\//.test(src) ? `/manual/images/${name}` : undefined
}

function listOf(parts: readonly ManualPart[]): string {
  const lists = parts.map(({ title, pages }) => {
    const items = pages.map(
      ({ name, title, summary }) => `- [${title}](/manual/${name}.md)${summary && `: ${summary}`}`,
    )
    return `## ${title}\n\n${items.join('\n')}\n`
  })
  const about = '> A self-hosted gateway to hosted generative models. The API itself is described by /openapi.json.'
  return `# Gatehouse\n\n${about}\n\n${lists.join('\n')}`
}
