/** Renders Markdown to HTML. HTML in the text is escaped. */

type MarkdownOptions = {
  /** The address of a link; undefined: the link is removed and its text stays. */
  link(href: string): string | undefined
  /** The address of an image; undefined, as for all when absent: its description stands in its place. */
  image?(src: string): string | undefined
}

export type Heading = { level: number; text: string; anchor: string }
type Rendered = { html: string; headings: Heading[] }

export function renderMarkdown(text: string, { link, image }: MarkdownOptions): Rendered {
  const html = Bun.markdown.html(withoutComments(text), { tables: true, noHtmlBlocks: true, noHtmlSpans: true })
  const headings: Heading[] = []
  const anchors = new Map<string, number>()
  const linked = html
    .replace(/<h([1-6])>(.*?)<\/h\1>/gs, (_, level: string, inner: string) => {
      const title = plainText(inner)
      const anchor = uniqueAnchor(anchorOf(title), anchors)
      headings.push({ level: Number(level), text: title, anchor })
      return `<h${level} id="${anchor}">${inner} <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></h${level}>`
    })
    .replace(/<a href="([^"]*)"([^>]*)>(.*?)<\/a>/gs, (whole, href: string, rest: string, inner: string) => {
      if (rest.includes('aria-label')) return whole
      const target = link(unescapeHtml(href))
      return target === undefined ? inner : `<a href="${escapeHtml(target)}"${rest}>${inner}</a>`
    })
    .replace(/<img src="([^"]*)" alt="([^"]*)"[^>]*>/g, (_, src: string, alt: string) => {
      const source = image?.(unescapeHtml(src))
      return source === undefined ? alt : `<img src="${escapeHtml(source)}" alt="${alt}" loading="lazy">`
    })
  return { html: linked, headings }
}

/** As on GitHub: lower case, no punctuation, hyphens for spaces. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')

function uniqueAnchor(anchor: string, seen: Map<string, number>): string {
  const count = seen.get(anchor) ?? 0
  seen.set(anchor, count + 1)
  return count === 0 ? anchor : `${anchor}-${count}`
}

/** Comments on their own lines, outside code blocks. */
function withoutComments(text: string): string {
  const parts = text.split(/^(```[\s\S]*?^```[^\S\n]*$)/m)
  return parts.map((part, at) => (at % 2 === 1 ? part : part.replace(/^<!--[\s\S]*?-->$/gm, ''))).join('')
}

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const NAMED: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const unescapeHtml = (html: string): string =>
  html.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => NAMED[name] ?? whole)

const plainText = (html: string): string => unescapeHtml(html.replace(/<[^>]*>/g, ''))
