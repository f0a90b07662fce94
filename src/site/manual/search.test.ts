import { describe, expect, it } from 'bun:test'
import { renderMarkdown } from '../../kit/markdown.ts'
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
  page('money', '# Money\n\nEach call has a price. `max_budget_tokens` bounds it.\n'),
])
const pagesOf = (query: string): string[] => search(query).map((hit) => hit.page)

describe('the search of the manual', () => {
  it('returns the section whose heading has the words first', () => {
    expect(search('revoke')[0]).toMatchObject({ page: 'tokens', heading: 'Revoke a token', anchor: 'revoke-a-token' })
  })
  it('returns the opening of the page with this title first', () => {
    expect(search('tokens')[0]).toMatchObject({ page: 'tokens', heading: 'Tokens', anchor: '' })
  })
  it('finds a word by its start of three letters, and no shorter one', () => {
    expect(pagesOf('rev')).toEqual(['tokens', 'streams'])
    expect(pagesOf('re')).toEqual([])
  })
  it('finds a word in another form', () => {
    expect(pagesOf('revoking')).toEqual(['tokens', 'streams'])
    expect(pagesOf('event')).toEqual(['streams'])
  })
  it('ranks the section with more of the words first, and returns those with one', () => {
    expect(pagesOf('a client that identifies a call')).toEqual(['tokens', 'money'])
    expect(pagesOf('a client that bounds a call')).toEqual(['money', 'tokens'])
  })
  it('finds a synonym, below a section that has the word itself', () => {
    expect(pagesOf('costs')).toEqual(['money'])
    expect(pagesOf('stream')[0]).toBe('streams')
  })
  it('ignores words that any question has', () => {
    expect(pagesOf('what is the price of it')).toEqual(['money'])
    expect(pagesOf('what is it')).toEqual([])
  })
  it('finds text in code blocks, whose lines are never headings', () => {
    expect(search('tok_1')[0]?.heading).toBe('Revoke a token')
  })
  it('finds a name with underscores as a whole and by its words', () => {
    expect(pagesOf('max_budget_tokens')).toEqual(['money'])
    expect(pagesOf('budget')).toEqual(['money'])
  })
  it('shows the text around the words without markup', () => {
    expect(search('events')[0]?.excerpt).toBe('A stream is a list of events. It may be revoked.')
  })
  it('returns nothing for a query without words', () => {
    expect(search(' ?! ')).toEqual([])
  })
})
