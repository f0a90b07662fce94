import { describe, expect, it } from 'bun:test'
import { renderMarkdown } from './markdown.ts'

const render = (text: string) =>
  renderMarkdown(text, { link: (href) => (href.startsWith('javascript') ? undefined : `/x/${href}`) })

describe('renderMarkdown', () => {
  it('renders headings with the same anchors as GitHub, unique within the page', () => {
    const { html, headings } = render('# What `a.b` is?\n\n## Keys & values\n\n## Keys & values\n')
    expect(headings).toEqual([
      { level: 1, text: 'What a.b is?', anchor: 'what-ab-is' },
      { level: 2, text: 'Keys & values', anchor: 'keys--values' },
      { level: 2, text: 'Keys & values', anchor: 'keys--values-1' },
    ])
    expect(html).toContain('<h2 id="keys--values-1">Keys &amp; values')
  })

  it('escapes HTML in the text', () => {
    const { html } = render('<script>alert(1)</script>\n\na <img src=x onerror=alert(1)> b\n\n<a href="/y">z</a>')
    expect(html).not.toMatch(/<(script|img|a)\b/)
    expect(html).toContain('&lt;script&gt;')
  })

  it('shows the images that have an address, and the description of others', () => {
    const image = (src: string) => (src.endsWith('.png') ? `/x/${src}` : undefined)
    const { html } = renderMarkdown('![A "house"](a.png) and ![a tree](b.gif)', { link: () => undefined, image })
    expect(html).toContain('<img src="/x/a.png" alt="A &quot;house&quot;" loading="lazy"> and a tree')
    expect(render('![a tree](a.png)').html).not.toContain('<img')
  })

  it('resolves the address of each link, and removes a link without one', () => {
    expect(render('[a](b.md#c) and [d](javascript:alert(1))').html).toBe('<p><a href="/x/b.md#c">a</a> and d</p>\n')
    expect(render('[a](b"onclick="x)').html).not.toContain('"onclick')
  })

  it('renders the alternative text of an image and loads none', () => {
    expect(render('![A picture](https://a.example/x.png)').html).toBe('<p>A picture</p>\n')
  })

  it('removes comments outside code blocks', () => {
    expect(render('<!-- made -->\n\ntext').html).toBe('<p>text</p>\n')
    expect(render('```html\n<!-- kept -->\n```\n').html).toContain('&lt;!-- kept --&gt;')
  })

  it('renders tables and code blocks', () => {
    const { html } = render('| a | b |\n|---|---|\n| 1 | 2 |\n\n```ts\nconst a = 1 < 2\n```\n')
    expect(html).toContain('<td>1</td>')
    expect(html).toContain('<code class="language-ts">const a = 1 &lt; 2\n</code>')
  })
})
