/** Searches the manual: finds the section that a question is about and quotes its best sentences (Okapi BM25). */
import { inverseDocumentFrequency, saturation, splitWords, termsOf } from './terms.ts'

export type ManualPage = { name: string; text: string }

type Section = {
  /** The page's name without its extension: `chat`. */
  page: string
  /** The page's first heading, or its name. */
  title: string
  heading: string
  /** The heading's anchor within the page. */
  anchor: string
  units: Unit[]
}

/** A part that is only quoted as a whole: a sentence, a list item, a table row, a block of code. */
type Unit = { text: string; kind: 'sentence' | 'line' | 'code' }

type Found = { section: Section; score: number; isGood: boolean }

export type Manual = ReturnType<typeof createManual>

/** Bounds for the memory of the index; a manual is far smaller. */
const MAX_CHARACTERS = 4_000_000
const MAX_SECTIONS = 4000
/** A longer prompt is hardly a question about the manual; only its first words count. */
const MAX_QUESTION_TERMS = 64
/** A word of a heading counts as much as this many in the text. */
const HEADING_WEIGHT = 4
/** The part of a question's total term weight that a section must cover to be its answer. */
const GOOD_COVERAGE = 0.5

type Posting = { section: number; weight: number }

export function createManual(pages: ManualPage[]) {
  const sections = readSections(pages)
  const postings = new Map<string, Posting[]>()
  const lengths = sections.map((section, at) => {
    const weights = termWeights(section)
    for (const [term, weight] of weights) {
      const list = postings.get(term)
      if (list) list.push({ section: at, weight })
      else postings.set(term, [{ section: at, weight }])
    }
    return [...weights.values()].reduce((sum, weight) => sum + weight, 0)
  })
  const average = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length)
  // An unknown word weighs most, so it lowers the coverage.
  const idf = (term: string) => inverseDocumentFrequency(sections.length, postings.get(term)?.length ?? 0)

  /** A question that repeats a heading, or has the same topic as a heading, gets that section without scoring. */
  const byHeading = new Map(sections.map((section) => [questionKey(section.heading), section]))
  const byTopic = Map.groupBy(sections, (section) => topicKey(section.heading))

  function sectionFor(question: string): Section | undefined {
    const key = questionKey(question)
    if (!key.includes(' ')) return undefined
    if (byHeading.has(key) || !isSentence(question)) return byHeading.get(key)
    return closest(question, byTopic.get(topicKey(question) || key) ?? [])
  }

  /** The best sections first; `isGood` means that the question is clearly about the section. */
  function search(question: string, limit: number): Found[] {
    const answer = sectionFor(question)
    const scored = scoreSections(question, limit)
    if (!answer) return scored
    const rest = scored.filter(({ section }) => section !== answer)
    return [{ section: answer, score: Number.POSITIVE_INFINITY, isGood: true }, ...rest].slice(0, limit)
  }

  function scoreSections(question: string, limit: number): Found[] {
    const terms = [...new Set(termsOf(question, MAX_QUESTION_TERMS * 8))].slice(0, MAX_QUESTION_TERMS)
    const isQuestion = isSentence(question)
    // Names of fields and statuses: `retry_after`, 429. One of them is as significant as two words.
    const names = question.slice(0, 2000).match(/\b[a-z]+(?:_[a-z]+)+\b|\b[45]\d\d\b/g) ?? []
    const total = terms.reduce((sum, term) => sum + idf(term), 0)
    const scores = new Map<number, { score: number; covered: number; terms: string[] }>()
    for (const term of terms) {
      for (const { section, weight } of postings.get(term) ?? []) {
        const length = lengths[section] ?? 0
        const entry = scores.get(section) ?? { score: 0, covered: 0, terms: [] }
        entry.score += idf(term) * saturation(weight, { length, average })
        entry.covered += idf(term)
        entry.terms.push(term)
        scores.set(section, entry)
      }
    }
    return [...scores]
      .sort(([first, one], [second, other]) => other.score - one.score || first - second)
      .slice(0, limit)
      .flatMap(([at, { score, covered, terms: matched }]) => {
        const section = sections[at]
        if (!section) return []
        const isCovered = isQuestion && covered >= GOOD_COVERAGE * total
        const isGood = isCovered && (occurTogether(section, matched) || includesName(section, names))
        return [{ section, score, isGood }]
      })
  }

  return {
    search,
    /** The part of the section that fits the question best, at most `maximum` characters. */
    passage: (section: Section, question: string, maximum: number) => passageOf(section, question, { maximum, idf }),
  }
}

const questionKey = (text: string): string => splitWords(text, MAX_QUESTION_TERMS).join(' ').toLowerCase()

/** "How do I add a provider?" and the heading "Add a provider" have the same topic. Empty: no topic. */
function topicKey(text: string): string {
  const terms = [...new Set(termsOf(text, MAX_QUESTION_TERMS))].sort().join(' ')
  // The name of the project is a stop word in a longer question, and the only topic of "What is Gatehouse?".
  return terms || (/\bgatehouse\b/i.test(text.slice(0, 200)) ? 'gatehouse' : '')
}

/** Of several sections with the same topic, the one whose heading has the most words of the question; of equals, the first. */
function closest(question: string, sections: Section[]): Section | undefined {
  const questionWords = new Set(splitWords(question.toLowerCase(), MAX_QUESTION_TERMS))
  const shared = ({ heading }: Section) =>
    splitWords(heading.toLowerCase()).filter((word) => questionWords.has(word)).length
  return sections.toSorted((one, other) => shared(other) - shared(one))[0]
}

/** "test" and "hello" are not questions, even if the manual has these words. */
const isSentence = (question: string): boolean => splitWords(question, 3).length === 3

/** Whether the heading or one sentence has at least two of the terms: terms scattered over a section mean nothing. */
function occurTogether(section: Section, terms: string[]): boolean {
  const heading = new Set(termsOf(`${section.title} ${section.heading}`))
  const inHeading = terms.filter((term) => heading.has(term)).length
  if (inHeading >= Math.min(2, terms.length)) return true
  return section.units.some((unit) => {
    const own = new Set(unit.kind === 'code' ? [] : termsOf(unit.text))
    return terms.filter((term) => own.has(term) || heading.has(term)).length >= 2 && terms.some((term) => own.has(term))
  })
}

const includesName = (section: Section, names: string[]): boolean =>
  names.some((name) => section.units.some((unit) => unit.text.includes(name)))

function termWeights(section: Section): Map<string, number> {
  const weights = new Map<string, number>()
  const add = (text: string, weight: number) => {
    for (const term of termsOf(text, Number.POSITIVE_INFINITY)) weights.set(term, (weights.get(term) ?? 0) + weight)
  }
  // The first section of a page answers "what is ...", so the title counts twice.
  add(section.heading, section.title === section.heading ? 2 * HEADING_WEIGHT : HEADING_WEIGHT)
  if (section.title !== section.heading) add(section.title, 1)
  // Code is quoted but not searched: all examples have the same words.
  for (const unit of section.units) if (unit.kind !== 'code') add(unit.text, 1)
  return weights
}

function passageOf(
  section: Section,
  question: string,
  { maximum, idf }: { maximum: number; idf: (term: string) => number },
): string {
  const terms = new Set(termsOf(question, MAX_QUESTION_TERMS * 8))
  const scores = section.units.map((unit) => {
    if (unit.kind === 'code') return 0
    return [...new Set(termsOf(unit.text))].reduce((sum, term) => sum + (terms.has(term) ? idf(term) : 0), 0)
  })
  const best = scores.indexOf(Math.max(0, ...scores))
  let first = Math.max(0, best)
  let end = first
  let size = 0
  const fits = (unit: Unit | undefined) => unit !== undefined && size + unit.text.length + 1 <= maximum
  const take = (unit: Unit | undefined) => {
    size += (unit?.text.length ?? 0) + 1
  }
  while (fits(section.units[end])) take(section.units[end++])
  while (first > 0 && end > first && fits(section.units[first - 1])) take(section.units[--first])
  const units = section.units.slice(first, end)
  if (units.length === 0) return (section.units[first]?.text ?? '').slice(0, maximum)
  return units
    .map((unit, at) => {
      const before = units[at - 1]
      if (!before) return unit.text
      return `${before.kind === 'sentence' && unit.kind === 'sentence' ? ' ' : '\n'}${unit.text}`
    })
    .join('')
}

function readSections(pages: ManualPage[]): Section[] {
  const sections: Section[] = []
  let total = 0
  for (const { name, text } of pages) {
    total += text.length
    if (total > MAX_CHARACTERS) break
    sections.push(...readPage(name.replace(/\.(md|markdown|txt)$/i, ''), text))
  }
  return sections.filter((section) => section.units.length > 0).slice(0, MAX_SECTIONS)
}

function readPage(page: string, text: string): Section[] {
  const sections: Section[] = []
  let title: string | undefined
  let heading = ''
  let block: string[] = []
  let fence: string | undefined
  const close = () => {
    const named = heading || title || page
    sections.push({ page, title: title ?? page, heading: named, anchor: anchorOf(named), units: readUnits(block) })
    block = []
  }
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    const mark = /^ {0,3}(```+|~~~+)/.exec(line)?.[1]
    if (mark && !fence) fence = mark
    else if (mark && fence && mark.startsWith(fence)) fence = undefined
    // A heading: one to six number signs, its text, and optional closing number signs.
    const found = fence || mark ? undefined : /^ {0,3}#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1]
    if (found === undefined) block.push(line)
    else {
      close()
      heading = plain(found)
      title ??= heading
    }
  }
  close()
  return sections
}

const anchorOf = (heading: string): string => splitWords(heading.toLowerCase()).join('-')

/** Removes the markup of emphasis, code and links. */
function plain(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(\*\*|__)(.+?)\1/g, '$2')
    .replaceAll('`', '')
    .trim()
}

function readUnits(lines: string[]): Unit[] {
  const units: Unit[] = []
  let paragraph: string[] = []
  let code: string[] | undefined
  const flush = () => {
    const text = paragraph.join(' ').trim()
    // A sentence ends at a punctuation mark if a blank and a possible beginning of a sentence follow.
    for (const sentence of text.split(/(?<=[.!?:])\s+(?=["'(`*\p{Lu}\d])/u)) {
      if (sentence) units.push({ text: sentence, kind: 'sentence' })
    }
    paragraph = []
  }
  for (const line of lines) {
    const isFence = /^\s*(```|~~~)/.test(line)
    if (code) {
      code.push(line)
      if (isFence) {
        units.push({ text: code.join('\n'), kind: 'code' })
        code = undefined
      }
    } else if (isFence) {
      flush()
      code = [line]
    } else if (line.trim() === '') flush()
    // List items and table rows are units; the delimiter row of a table is left out.
    else if (/^\s*([-*+]|\d+[.)])\s|^\s*\|/.test(line)) {
      flush()
      if (!/^[\s|:-]+$/.test(line)) units.push({ text: line.trimEnd(), kind: 'line' })
    } else {
      const last = units[units.length - 1]
      // An indented line continues the list item above it.
      if (/^\s{2,}\S/.test(line) && last?.kind === 'line' && paragraph.length === 0) last.text += ` ${line.trim()}`
      else paragraph.push(line.trim())
    }
  }
  flush()
  if (code) units.push({ text: code.join('\n'), kind: 'code' })
  return units
}
