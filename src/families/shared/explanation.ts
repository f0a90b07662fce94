/** How a call was routed, as the client reads it: JSON in a header or in a comment of a stream. */
import type { CallRecord } from '../../calls/call.ts'
import { attemptReport } from '../../observe/requests/requests.ts'

/** Many clients and proxies take no more than 8 KiB or 16 KiB of headers in all. */
export const HEADER_CHARACTERS = 4_096
export const COMMENT_CHARACTERS = 65_536

/** ASCII on one line; undefined where the client does not get it. What is too long is cut at its ends, and says so. */
export function explanationText(
  { call, decisions, requested, model, attempts, error }: Readonly<CallRecord>,
  max_characters: number,
): string | undefined {
  if (!call.is_explained || !decisions) return undefined
  const shown = {
    requested: requested ?? model,
    model,
    attempts: attempts.map((attempt) => attemptReport(attempt)),
    error,
    decisions: decisions.map((decision) => ({ ...decision, targets: [...decision.targets] })),
    cut: undefined as true | undefined,
  }
  for (let text = asciiJson(shown); ; text = asciiJson(shown)) {
    if (text.length <= max_characters) return text
    shown.cut = true
    const targets = longest(shown.decisions.map((one) => one.targets))
    if (targets && targets.length > 1) targets.pop()
    else if (shown.decisions.length > 0) shown.decisions.pop()
    else if (shown.attempts.length > 0) shown.attempts.pop()
    else return undefined
  }
}

function longest<Item>(lists: readonly Item[][]): Item[] | undefined {
  return lists.toSorted((a, b) => b.length - a.length)[0]
}

/** Without line ends and characters that a header value cannot have. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
