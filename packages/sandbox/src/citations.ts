/** Citations for answers with web search: sections of the manual, under addresses that are examples only. */
import type { Annotation } from '../../../src/spec/chat-completion.ts'
import type { ChatRequest } from '../../../src/spec/chat-request.ts'
import type { Manual } from './manual-search.ts'

/** A host that is not ours and not anybody's: `.example` is set aside (RFC 2606). */
const BASE = 'https://gatehouse.example/docs'
const SOURCES = { low: 1, medium: 3, high: 5 }
const MAX_SOURCES = 10
const FALLBACK = { title: 'The sandbox', url: `${BASE}/sandbox` }

type Source = { title: string; url: string }

/** Whether the request asks for web search, in either spelling; and for how many sources. */
export function requestedSources(request: ChatRequest): number {
  const { web_search: search, web_search_options: options } = request
  if (search?.enable !== true && options === undefined) return 0
  const size = search?.search_context_size ?? options?.search_context_size
  const defaultCount = size === 'low' || size === 'high' ? SOURCES[size] : SOURCES.medium
  return Math.min(MAX_SOURCES, search?.max_results ?? defaultCount)
}

/** The text with a line of sources behind it, and where in it each of them stands (in UTF-16 units, end excluded). */
export function withCitations(
  text: string,
  { manual, question, count }: { manual: Manual; question: string; count: number },
): { text: string; annotations: Annotation[] } {
  const annotations: Annotation[] = []
  let cited = `${text}\n\nSimulated sources:`
  for (const { title, url } of sourcesFor(manual, question, count)) {
    cited += annotations.length ? ', ' : ' '
    const start_index = cited.length
    cited += `[${title}](${url})`
    annotations.push({ type: 'url_citation', url_citation: { start_index, end_index: cited.length, url, title } })
  }
  return { text: cited, annotations }
}

function sourcesFor(manual: Manual, question: string, count: number): Source[] {
  const sources = manual.search(question, count).map(({ section: { page, title, heading, anchor } }) => ({
    title: heading === title ? title : `${title}: ${heading}`,
    url: `${BASE}/${encodeURIComponent(page)}${anchor ? `#${encodeURIComponent(anchor)}` : ''}`,
  }))
  return sources.length ? sources : [FALLBACK]
}
