/** A citation of the vendor's as the specification's annotation, where it points to an address. */

import { isRecord } from '../../../kit/json.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'

/** `start` and `end`: the words that it stands behind. Citations of the client's own documents have no address. */
export function citationOf(raw: unknown, start: number, end: number): Annotation | undefined {
  if (!isRecord(raw)) return undefined
  const url = typeof raw.url === 'string' ? raw.url : raw.source
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return undefined
  const title = typeof raw.title === 'string' ? raw.title : url
  return { type: 'url_citation', url_citation: { start_index: start, end_index: end, url, title } }
}
