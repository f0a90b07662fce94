/** Converts the vendor's grounding to annotations. */
import { asRecord, isRecord, type JsonRecord, recordsIn } from '../../../kit/json.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'

/** No reader follows more citations than this, and computing each one scans the whole text. */
const MAX_ANNOTATIONS = 1000

type Page = { url: string; title: string } | undefined

export function createGrounding() {
  let pages: Page[] = []
  const places: { support: JsonRecord; pages: Page[] }[] = []

  return {
    /** Takes the grounding of one event. Pages and supports may arrive in different events. */
    take(metadata: unknown): void {
      if (!isRecord(metadata)) return
      if (Array.isArray(metadata.groundingChunks) && metadata.groundingChunks.length > 0) {
        pages = metadata.groundingChunks.map(pageOf)
      }
      const supports = recordsIn(metadata.groundingSupports)
      for (const support of supports) if (places.length < MAX_ANNOTATIONS) places.push({ support, pages })
    },
    /** Called at the end with the whole text and the byte offset at which each part starts. */
    annotations(text: string, partStarts: readonly number[]): Annotation[] {
      const bytes = Buffer.from(text)
      const found = new Map<string, Annotation>()
      const cite = (page: Page, [start_index, end_index]: Span) => {
        if (!page || found.size >= MAX_ANNOTATIONS) return
        const annotation: Annotation = { type: 'url_citation', url_citation: { start_index, end_index, ...page } }
        found.set(`${start_index} ${end_index} ${page.url}`, annotation)
      }
      for (const { support, pages: known } of places) {
        const indices = Array.isArray(support.groundingChunkIndices) ? support.groundingChunkIndices : []
        // Supports may arrive before the pages that they refer to.
        const list = known.length > 0 ? known : pages
        const span = spanOf(support.segment, { text, bytes, partStarts })
        for (const index of indices) if (typeof index === 'number') cite(list[index], span)
      }
      // Pages without a support apply to the whole text.
      if (places.length === 0) for (const page of pages) cite(page, [0, text.length])
      return [...found.values()]
    },
  }
}

function pageOf(chunk: unknown): Page {
  if (!isRecord(chunk)) return undefined
  const { uri, title } = [chunk.web, chunk.maps, chunk.retrievedContext].find(isRecord) ?? {}
  if (typeof uri !== 'string' || !/^https?:\/\//i.test(uri)) return undefined
  return { url: uri, title: typeof title === 'string' ? title : uri }
}

type Span = [start: number, end: number]
type IndexedText = { text: string; bytes: Buffer; partStarts: readonly number[] }

/** The vendor counts bytes of UTF-8 from the start of a part; clients count characters from the start of the text. */
function spanOf(segment: unknown, { text, bytes, partStarts }: IndexedText): Span {
  const { startIndex, endIndex, partIndex, text: quoted } = asRecord(segment)
  const from = partStarts[wholeNumber(partIndex) ?? 0] ?? 0
  const character = (byte: number) => bytes.toString('utf8', 0, from + byte).length
  const start = character(wholeNumber(startIndex) ?? 0)
  const end = Math.max(start, Math.min(text.length, character(wholeNumber(endIndex) ?? bytes.length)))
  if (typeof quoted !== 'string' || quoted === '' || text.slice(start, end) === quoted) return [start, end]
  // The quoted text is more reliable than offsets that do not match it.
  const at = text.indexOf(quoted)
  return at === -1 ? [start, end] : [at, at + quoted.length]
}

const wholeNumber = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
