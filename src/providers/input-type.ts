/** What a text to embed is, query or document: the house's two words and what each vendor calls them. */

export type InputTypeWords = { query: string; document: string }

/** What clients of several vendors write, as one of the house's words. */
const KNOWN: Record<string, keyof InputTypeWords> = {
  query: 'query',
  search_query: 'query',
  retrieval_query: 'query',
  'retrieval.query': 'query',
  document: 'document',
  passage: 'document',
  search_document: 'document',
  retrieval_document: 'document',
  'retrieval.passage': 'document',
}

/** In the vendor's words; what nobody here knows may be the vendor's own, and stays as it is. */
export function vendorInputType(value: string, words: InputTypeWords): string {
  const known = KNOWN[value.toLowerCase()]
  return known === undefined ? value : words[known]
}
