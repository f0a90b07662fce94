/** Finds sections of the manual by a query in natural language: stemmed words and their synonyms, ranked by MiniSearch. */
import MiniSearch, { type SearchResult } from 'minisearch'
import { stemmer } from 'stemmer'
import { type IndexedPage, type Section, sectionsOf } from './sections.ts'
import { STOP_WORDS, SYNONYMS } from './synonyms.ts'

export type Hit = Omit<Section, 'text'> & { excerpt: string }
export type ManualSearch = (query: string) => Hit[]

/** Of a longer query only the first words count. */
const MAX_QUERY_WORDS = 16
const MAX_HITS = 20
const EXCERPT_CHARACTERS = 180
/** A match in the title of the page or the heading of the section ranks above any number of matches in the text. */
const BOOST = { title: 5, heading: 4, text: 1 }
const SYNONYM_BOOST = 0.4
/** Shorter starts of words match too much. */
const MIN_PREFIX_CHARACTERS = 3

/** A section matches if it has one word of the query, the start of one, or a synonym; those with more of them rank first. */
export function createManualSearch(pages: readonly IndexedPage[]): ManualSearch {
  const sections = pages.flatMap(sectionsOf)
  const index = new MiniSearch<Section & { id: number }>({
    fields: ['title', 'heading', 'text'],
    tokenize: wordsOf,
    processTerm: indexTerms,
  })
  index.addAll(sections.map((section, id) => ({ ...section, id })))

  return (query) => {
    const terms = [...new Set(wordsOf(query).slice(0, MAX_QUERY_WORDS).flatMap(queryTerm))]
    const given = terms.length
    for (const term of terms.slice()) {
      for (const synonym of SYNONYM_TERMS.get(term) ?? []) if (!terms.includes(synonym)) terms.push(synonym)
    }
    const results = index.search(query, {
      tokenize: () => terms,
      processTerm: (term) => term,
      boost: BOOST,
      boostTerm: (_, at) => (at < given ? 1 : SYNONYM_BOOST),
      prefix: (term, at) => at < given && term.length >= MIN_PREFIX_CHARACTERS,
    })
    return results.slice(0, MAX_HITS).flatMap((result) => {
      const section = sections[result.id]
      return section ? [hitOf(section, result)] : []
    })
  }
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []

/** The words of a name such as `max_tokens` are found one by one too. */
function indexTerms(word: string): string[] {
  const parts = word.split('_').filter((part) => part !== '' && !STOP_WORDS.has(part))
  const terms = parts.map(stemmer)
  return parts.length > 1 ? [word, ...terms] : terms
}

const queryTerm = (word: string): string[] => (STOP_WORDS.has(word) ? [] : [word.includes('_') ? word : stemmer(word)])

/** The terms of the other words of each group, by the term of a word. */
const SYNONYM_TERMS = new Map<string, Set<string>>()
for (const group of SYNONYMS) {
  const terms = group.split(' ').map(stemmer)
  for (const term of terms) {
    const others = SYNONYM_TERMS.get(term) ?? new Set()
    for (const other of terms) if (other !== term) others.add(other)
    SYNONYM_TERMS.set(term, others)
  }
}

function hitOf({ text, ...section }: Section, { terms }: SearchResult): Hit {
  const matched = new Set(terms)
  const first = text
    .matchAll(/[\p{L}\p{N}_]+/gu)
    .find(([word]) => indexTerms(word.toLowerCase()).some((term) => matched.has(term)))
  const start = Math.max(0, (first?.index ?? 0) - EXCERPT_CHARACTERS / 3)
  const cut = text.slice(start, start + EXCERPT_CHARACTERS).trim()
  const excerpt = `${start > 0 ? '... ' : ''}${cut}${start + EXCERPT_CHARACTERS < text.length ? ' ...' : ''}`
  return { ...section, excerpt }
}
