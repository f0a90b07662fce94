import { describe, expect, it } from 'bun:test'
import { renderMarkdown } from '../../kit/markdown.ts'
import { withTables } from './tables.ts'

const render = (text: string) => withTables(renderMarkdown(text, { link: (href) => href }).html).replaceAll('\n', '')

describe('a table of the manual', () => {
  it('scrolls where it is wide, and has the heading of its column at each cell', () => {
    expect(render('| `key` | what "it" is |\n|---|---|\n| a | |\n| b | c |\n')).toBe(
      '<div class="scroll"><table><thead><tr><th><code>key</code></th><th>what &quot;it&quot; is</th></tr></thead><tbody>' +
        '<tr><td data-label="key">a</td><td data-label="what &quot;it&quot; is"></td></tr>' +
        '<tr><td data-label="key">b</td><td data-label="what &quot;it&quot; is">c</td></tr></tbody></table></div>',
    )
  })

  it('has the headings of its own, not those of the table before it', () => {
    const html = render('| a |\n|---|\n| 1 |\n\ntext\n\n| b |\n|---|\n| 2 |\n')
    expect(html).toContain('<td data-label="a">1</td>')
    expect(html).toContain('<td data-label="b">2</td>')
    expect(html.match(/class="scroll"/g)).toHaveLength(2)
  })
})
