/** Escapes characters that some clients treat as the end of a line in an event stream. */

/**
 * Characters that JSON and event streams allow, but at which Python's `splitlines` ends a line. Clients that read
 * streams with it (httpx's `iter_lines`) would see half an event. JSON escapes the others itself.
 */
const LINE_ENDS = ['\u0085', '\u2028', '\u2029']

/** Searches for each character: without a match this takes nanoseconds, which a regular expression does not reach. */
export function inOneLine(events: string): string {
  let text = events
  for (const sign of LINE_ENDS) {
    if (text.includes(sign)) text = text.replaceAll(sign, `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
  }
  return text
}

/** U+0085, U+2028 and U+2029 in UTF-8, as latin1 text. JSON does not escape them, and some clients end a line there. */
const LINE_END_BYTES: Record<string, [bytes: string, escaped: string][]> = {
  '\u00c2': [['\u00c2\u0085', '\\u0085']],
  '\u00e2': [
    ['\u00e2\u0080\u00a8', '\\u2028'],
    ['\u00e2\u0080\u00a9', '\\u2029'],
  ],
}
const FIRST_BYTES = Object.entries(LINE_END_BYTES)

/** Escapes these characters in latin1 text. Searching for the first byte is fast. */
export function escapeLineEnds(events: string): string {
  let text = events
  for (const [first, ends] of FIRST_BYTES) {
    if (!events.includes(first)) continue
    for (const [bytes, escaped] of ends) if (text.includes(bytes)) text = text.replaceAll(bytes, escaped)
  }
  return text
}
