/** Line separators that some clients take for the end of a line of an event stream, escaped. */

/**
 * Signs that JSON leaves as they are and event streams do not mind, but at which Python's `splitlines` ends a line: many
 * clients there read streams with it (httpx's `iter_lines`), and would find half an event. The rest JSON escapes.
 */
const LINE_ENDS = ['\u0085', '\u2028', '\u2029']

/** Looked for one by one: that is a matter of nanoseconds where there is none, and a pattern's is not. */
export function inOneLine(events: string): string {
  let text = events
  for (const sign of LINE_ENDS) {
    if (text.includes(sign)) text = text.replaceAll(sign, `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
  }
  return text
}

/** U+0085, U+2028 and U+2029 as they stand in UTF-8: JSON leaves them as they are, and some clients end a line there. */
const LINE_END_BYTES: Record<string, [bytes: string, escaped: string][]> = {
  '\u00c2': [['\u00c2\u0085', '\\u0085']],
  '\u00e2': [
    ['\u00e2\u0080\u00a8', '\\u2028'],
    ['\u00e2\u0080\u00a9', '\\u2029'],
  ],
}
const FIRST_BYTES = Object.entries(LINE_END_BYTES)

/** The same events with no line end in them that only some see. The first byte is looked for first: that is quick. */
export function escapeLineEnds(events: string): string {
  let text = events
  for (const [first, ends] of FIRST_BYTES) {
    if (!events.includes(first)) continue
    for (const [bytes, escaped] of ends) if (text.includes(bytes)) text = text.replaceAll(bytes, escaped)
  }
  return text
}
