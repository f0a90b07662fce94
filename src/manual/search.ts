/** Finds sections of the manual by the words of a query. */
import type { Heading } from '../kit/markdown.ts'

type IndexedPage = { name: string; title: string; text: string; headings: Heading[] }
export type Hit = { page: string; title: string; heading: string; anchor: string; excerpt: string }

type Section = Omit<Hit, 'excerpt'> & { text: string; words: string[]; headingWords: Set<string> }

/** A longer query is no search for a section; its first words decide. */
const MAX_QUERY_WORDS = 16
const MAX_HITS = 20
const EXCERPT_CHARACTERS = 180
const HEADING_WEIGHT = 6

export type ManualSearch = (query: string) => Hit[]

/** A section is found when it has every word of the query, in its heading or its text; a word may be the start of one. */
export function createManualSearch(pages: readonly IndexedPage[]): ManualSearch {
  const sections = pages.flatMap(sectionsOf)
  return (query) => {
    const wanted = wordsOf(query).slice(0, MAX_QUERY_WORDS)
    if (wanted.length === 0) return []
    return sections
      .map((section) => ({ section, score: scoreOf(section, wanted) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, MAX_HITS)
      .map(({ section: { page, title, heading, anchor, text } }) => {
        return { page, title, heading, anchor, excerpt: excerptOf(text, wanted) }
      })
  }
}

/** More for a whole word than for the start of one, more in a short section than in a long one. */
function scoreOf({ words, headingWords }: Section, wanted: string[]): number {
  let score = 0
  for (const word of wanted) {
    const whole = words.filter((one) => one === word).length
    const begun = whole > 0 ? 0 : words.filter((one) => one.startsWith(word)).length
    const inHeading = headingWords.has(word) || [...headingWords].some((one) => one.startsWith(word))
    if (whole + begun === 0 && !inHeading) return 0
    const frequency = (whole + begun / 2) / (whole + begun / 2 + 0.5 + words.length / 200)
    score += frequency + (inHeading ? HEADING_WEIGHT : 0)
  }
  return score
}

function sectionsOf({ name, title, text, headings }: IndexedPage): Section[] {
  const blocks = blocksOf(text)
  return headings.map(({ text: heading, anchor }, at) => {
    const body = plain(blocks[at + 1] ?? '')
    const headingWords = new Set(wordsOf(at === 0 ? heading : `${title} ${heading}`))
    return {
      page: name,
      title,
      heading,
      anchor: at === 0 ? '' : anchor,
      text: body,
      words: wordsOf(body),
      headingWords,
    }
  })
}

/** The text before the first heading, then that below each heading; a number sign in a code block is none. */
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

const wordsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).map((word) => word.replace(/(?<=\w{3})s$/, ''))

function excerptOf(text: string, wanted: string[]): string {
  const lower = text.toLowerCase()
  const places = wanted.map((word) => lower.indexOf(word)).filter((at) => at >= 0)
  const start = Math.max(0, Math.min(...(places.length > 0 ? places : [0])) - EXCERPT_CHARACTERS / 3)
  const cut = text.slice(start, start + EXCERPT_CHARACTERS).trim()
  return `${start > 0 ? '... ' : ''}${cut}${start + EXCERPT_CHARACTERS < text.length ? ' ...' : ''}`
}
