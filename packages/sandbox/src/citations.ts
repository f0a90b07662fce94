/** Citations for answers with web search: sections of the manual, with URLs that are only examples. */
import type { ChatRequest } from '../../../src/providers/provider.ts'
import type { Annotation } from '../../../src/spec/chat-completion.ts'
import type { Manual } from './manual-search.ts'

/** A host that nobody owns: `.example` is reserved (RFC 2606). */
const BASE = 'https://gatehouse.example/docs'
const SOURCES = { low: 1, medium: 3, high: 5 }
const MAX_SOURCES = 10
const FALLBACK = { title: 'The sandbox', url: `${BASE}/sandbox` }

type Source = { title: string; url: string }

/** How many sources the request asks for, in either form of web search; 0 without web search. */
export function requestedSources(request: ChatRequest): number {
  const { web_search: search, web_search_options: options } = request
  if (search?.enable !== true && options === undefined) return 0
  const size = search?.search_context_size ?? options?.search_context_size
  const defaultCount = size === 'low' || size === 'high' ? SOURCES[size] : SOURCES.medium
  return Math.min(MAX_SOURCES, search?.max_results ?? defaultCount)
}

/** The text followed by a line of sources, and the position of each source in it (in UTF-16 units, end excluded). */
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
