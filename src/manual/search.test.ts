import { describe, expect, it } from 'bun:test'
import { renderMarkdown } from '../kit/markdown.ts'
import { createManualSearch } from './search.ts'

const page = (name: string, text: string) => {
  const { headings } = renderMarkdown(text, { link: (href) => href })
  return { name, title: headings[0]?.text ?? name, text, headings }
}
const search = createManualSearch([
  page(
    'tokens',
    '# Tokens\n\nA token identifies a client.\n\n## Revoke a token\n\nIt stops working at once.\n\n```sh\n# not a heading\ngatehouse token revoke tok_1\n```\n',
  ),
  page('streams', '# Streams\n\nA [stream](x.md) is a list of events. It may be revoked.\n'),
])

describe('the search of the manual', () => {
  it('returns the section whose heading has the words first', () => {
    expect(search('revoke')[0]).toMatchObject({ page: 'tokens', heading: 'Revoke a token', anchor: 'revoke-a-token' })
  })
  it('finds a word by its start, and a plural by its singular', () => {
    expect(search('revok').map(({ page }) => page)).toEqual(['tokens', 'streams'])
    expect(search('event')[0]?.page).toBe('streams')
  })
  it('finds a section only when it has every word', () => {
    expect(search('revoked events').map(({ page }) => page)).toEqual(['streams'])
    expect(search('revoke events token')).toEqual([])
  })
  it('finds text in code blocks, whose lines are never headings', () => {
    expect(search('tok_1')[0]?.heading).toBe('Revoke a token')
  })
  it('shows the text around the words without markup', () => {
    expect(search('events')[0]?.excerpt).toBe('A stream is a list of events. It may be revoked.')
  })
  it('returns nothing for a query without words', () => {
    expect(search(' ?! ')).toEqual([])
  })
})
