/** The HTML of the manual: one layout with navigation, search and the page. It sends no request to another server. */
import { escapeHtml, type Heading } from '../../kit/markdown.ts'
import { BASE_STYLE, headOf } from './page-style.ts'
import type { ManualPart } from './parts.ts'
import type { Hit } from './search.ts'

const STYLE = `${BASE_STYLE}
  .top { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: center; padding: .6rem 1.5rem; background: var(--paper); border-bottom: 1px solid var(--line) }
  .top a { color: var(--ink); text-decoration: none }
  .top .name { font-weight: 650 }
  .top form { margin-left: auto }
  input { font: inherit; font-size: .95rem; width: 15rem; max-width: 100%; color: var(--ink); background: var(--code); border: 1px solid var(--line); border-radius: .5rem; padding: .3rem .7rem }
  .body { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 76rem; margin: 0 auto }
  .parts { padding: 1.5rem; font-size: .95rem; position: sticky; top: 3.4rem; align-self: start; max-height: calc(100vh - 3.4rem); overflow-y: auto }
  .parts summary { display: none }
  .parts h2 { font-size: .8rem; letter-spacing: .04em; text-transform: uppercase; color: var(--soft); margin: 1.2rem 0 .3rem }
  .parts ul { list-style: none; margin: 0; padding: 0 }
  .parts ul ul { margin: .1rem 0 .5rem .7rem; border-left: 1px solid var(--line); padding-left: .7rem; font-size: .9rem }
  .parts a { display: block; padding: .15rem 0; color: var(--soft); text-decoration: none }
  .parts a:hover, .parts a[aria-current] { color: var(--accent) }
  main { max-width: 50rem; margin: 0; padding: 1.5rem 1.5rem 4rem; min-width: 0; overflow-wrap: break-word }
  main h1 { font-size: 2rem; margin: .3rem 0 1rem }
  main h2 { font-size: 1.35rem; margin: 2.2rem 0 .6rem; scroll-margin-top: 4rem }
  main h3 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; scroll-margin-top: 4rem }
  main a { color: var(--accent) }
  main .anchor { color: var(--soft); text-decoration: none; opacity: 0; font-weight: 400 }
  main :is(h1, h2, h3):hover .anchor, main .anchor:focus { opacity: 1 }
  :not(pre) > code { background: var(--code); border-radius: .25rem; padding: .1em .3em; overflow-wrap: anywhere }
  .code { position: relative }
  .code button { position: absolute; top: .5rem; right: .5rem; font: 12px ui-sans-serif, system-ui, sans-serif; color: var(--soft); background: var(--paper); border: 1px solid var(--line); border-radius: .35rem; padding: .15rem .5rem; cursor: pointer }
  .scroll { overflow-x: auto; margin: 1rem 0 }
  .scroll td, .scroll td code { overflow-wrap: normal }
  th { text-align: left; font-size: .85rem; color: var(--soft); padding: .4rem .75rem .4rem 0 }
  .hits p { margin: .2rem 0 1.2rem }
  .soft { color: var(--soft) }
  @media (max-width: 56rem) {
    .body { display: block }
    .parts { position: static; max-height: none; padding: .8rem 1.5rem 0 }
    .parts summary { display: list-item; cursor: pointer }
    .top { position: static }
    .top form, input { width: 100%; margin: 0 }
    main h1 { font-size: 1.7rem }
    .scroll td { min-width: 5rem }
    .scroll td:last-child { min-width: 14rem }
  }
  @media (max-width: 40rem) {
    .scroll thead { display: none }
    .scroll :is(table, tbody, tr, td) { display: block; min-width: 0 }
    .scroll td { border-top: 0; padding: .1rem 0; overflow-wrap: anywhere }
    .scroll td:empty { display: none }
    .scroll td:not(:first-child)::before { content: attr(data-label) ": "; color: var(--soft) }
    .scroll td:first-child { border-top: 1px solid var(--line); padding-top: .6rem; font-weight: 600 }
    .scroll td:last-child { padding-bottom: .6rem }
  }
`

/** Opens the list of pages on wide screens, adds a button for copying to each block of code, and focuses the search on `/`. */
const SCRIPT = `
  const parts = document.querySelector('.parts')
  const wide = matchMedia('(min-width: 56.01rem)')
  const fit = () => { parts.open = wide.matches }
  fit()
  wide.addEventListener('change', fit)
  for (const block of document.querySelectorAll('main pre')) {
    const box = document.createElement('div')
    box.className = 'code'
    block.replaceWith(box)
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = 'Copy'
    button.onclick = async () => {
      await navigator.clipboard.writeText(block.textContent)
      button.textContent = 'Copied'
      setTimeout(() => { button.textContent = 'Copy' }, 1500)
    }
    box.append(block, button)
  }
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.closest('input')) return
    event.preventDefault()
    document.querySelector('input').focus()
  })
`

export type Layout = {
  version: string
  nonce: string
  title: string
  parts: readonly ManualPart[]
  /** The HTML of the page's text. */
  content: string
  /** The page that is shown, and its headings. */
  current?: { name: string; headings: readonly Heading[] }
  query?: string
}

export function manualHtml({ version, nonce, title, parts, content, current, query = '' }: Layout): string {
  return `${headOf(`${title} - Gatehouse manual`, STYLE)}
<body>
<header class="top">
<a class="name" href="/">Gatehouse</a><a href="/manual">Manual</a><a href="/docs">API reference</a>
<form action="/manual/search" role="search"><input type="search" name="q" placeholder="Search the manual" aria-label="Search the manual" maxlength="200" value="${escapeHtml(query)}"></form>
</header>
<div class="body">
<details class="parts" open><summary>Pages</summary><nav aria-label="Manual">${navigation(parts, current)}</nav></details>
<main>
${content}
<footer>Gatehouse ${escapeHtml(version)}${current ? ` · <a href="/manual/${current.name}.md">This page as Markdown</a>` : ''}</footer>
</main>
</div>
<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>
`
}

function navigation(parts: readonly ManualPart[], current: Layout['current']): string {
  return parts
    .map(({ title, pages }) => {
      const items = pages.map((page) => {
        const isCurrent = page.name === current?.name
        const link = `<a href="/manual/${page.name}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(page.title)}</a>`
        return `<li>${link}${isCurrent ? sections(current?.headings ?? []) : ''}</li>`
      })
      return `<h2>${escapeHtml(title)}</h2><ul>${items.join('')}</ul>`
    })
    .join('')
}

function sections(headings: readonly Heading[]): string {
  const items = headings
    .filter(({ level }) => level === 2)
    .map(({ text, anchor }) => `<li><a href="#${anchor}">${escapeHtml(text)}</a></li>`)
  return items.length === 0 ? '' : `<ul>${items.join('')}</ul>`
}

/** The page at /manual: every page with its first sentence, by parts. */
export function indexContent(parts: readonly ManualPart[]): string {
  const lists = parts.map(({ title, pages }) => {
    const items = pages.map(
      ({ name, title, summary }) =>
        `<p><a href="/manual/${name}">${escapeHtml(title)}</a><br><span class="soft">${escapeHtml(plain(summary))}</span></p>`,
    )
    return `<h2>${escapeHtml(title)}</h2>${items.join('')}`
  })
  return `<h1>The manual</h1><div class="hits">${lists.join('')}</div>`
}

export function searchContent(query: string, hits: readonly Hit[]): string {
  const items = hits.map(({ page, title, heading, anchor, excerpt }) => {
    const name = heading === title ? title : `${title}: ${heading}`
    const address = `/manual/${page}${anchor ? `#${anchor}` : ''}`
    return `<p><a href="${escapeHtml(address)}">${escapeHtml(name)}</a><br><span class="soft">${escapeHtml(excerpt)}</span></p>`
  })
  const found = query === '' ? 'Enter the words to search for.' : `No section has a word of "${query}".`
  return `<h1>Search</h1>${items.length > 0 ? `<div class="hits">${items.join('')}</div>` : `<p>${escapeHtml(found)}</p>`}`
}

const plain = (markdown: string): string => markdown.replaceAll('`', '')
