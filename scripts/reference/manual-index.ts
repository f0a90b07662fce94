/** Writes the index of the manual, docs/manual/README.md: the title of every page, in four parts. */
import { loadManual } from '../../src/site/manual/load-manual.ts'
import { manualParts } from '../../src/site/manual/parts.ts'
import type { Page } from './pages.ts'

export async function manualIndex(): Promise<Page> {
  const parts = manualParts(await loadManual()).map(({ title, pages }) => {
    const lines = pages.map(
      ({ folder, name, title }) => `[${title}](${[folder, `${name}.md`].filter(Boolean).join('/')})`,
    )
    return `## ${title}\n\n${lines.join(',\n')}`
  })
  const about = '<!--generated:docs:reference-->\n\nA running gateway serves these pages at `/manual`, with search.'
  return { path: 'README.md', text: `# The manual\n\n${about}\n\n${parts.join('\n\n')}\n` }
}
