/** Finds sections of the manual by the terms of a query. */
import type { Heading } from '../kit/markdown.ts'

type IndexedPage = { name: string; title: string; text: string; headings: Heading[] }
export type Hit = { page: string; title: string; heading: string; anchor: string; excerpt: string }

type Section = Omit<Hit, 'excerpt'> & { text: string; terms: string[]; headingTerms: Set<string> }

/** Of a longer query only the first terms count. */
const MAX_QUERY_TERMS = 16
const MAX_HITS = 20
const EXCERPT_CHARACTERS = 180
const HEADING_WEIGHT = 6

export type ManualSearch = (query: string) => Hit[]

/** A section matches if its heading or its text has every term of the query; a term may be the start of a word. */
export function createManualSearch(pages: readonly IndexedPage[]): ManualSearch {
  const sections = pages.flatMap(sectionsOf)
  return (query) => {
    const queryTerms = termsOf(query).slice(0, MAX_QUERY_TERMS)
    if (queryTerms.length === 0) return []
    return sections
      .map((section) => ({ section, score: scoreOf(section, queryTerms) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, MAX_HITS)
      .map(({ section: { page, title, heading, anchor, text } }) => {
        return { page, title, heading, anchor, excerpt: excerptOf(text, queryTerms) }
      })
  }
}

/** A whole word scores more than the start of one, a short section more than a long one. */
function scoreOf({ terms, headingTerms }: Section, queryTerms: string[]): number {
  let score = 0
  for (const term of queryTerms) {
    const whole = terms.filter((one) => one === term).length
    const partial = whole > 0 ? 0 : terms.filter((one) => one.startsWith(term)).length
    const inHeading = headingTerms.has(term) || [...headingTerms].some((one) => one.startsWith(term))
    if (whole + partial === 0 && !inHeading) return 0
    const frequency = (whole + partial / 2) / (whole + partial / 2 + 0.5 + terms.length / 200)
    score += frequency + (inHeading ? HEADING_WEIGHT : 0)
  }
  return score
}

function sectionsOf({ name, title, text, headings }: IndexedPage): Section[] {
  const blocks = blocksOf(text)
  return headings.map(({ text: heading, anchor }, at) => {
    const body = plain(blocks[at + 1] ?? '')
    const headingTerms = new Set(termsOf(at === 0 ? heading : `${title} ${heading}`))
    return {
      page: name,
      title,
      heading,
      anchor: at === 0 ? '' : anchor,
      text: body,
      terms: termsOf(body),
      headingTerms,
    }
  })
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

const termsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).map((word) => word.replace(/(?<=\w{3})s$/, ''))

function excerptOf(text: string, queryTerms: string[]): string {
  const lower = text.toLowerCase()
  const places = queryTerms.map((term) => lower.indexOf(term)).filter((at) => at >= 0)
  const start = Math.max(0, Math.min(...(places.length > 0 ? places : [0])) - EXCERPT_CHARACTERS / 3)
  const cut = text.slice(start, start + EXCERPT_CHARACTERS).trim()
  return `${start > 0 ? '... ' : ''}${cut}${start + EXCERPT_CHARACTERS < text.length ? ' ...' : ''}`
}
