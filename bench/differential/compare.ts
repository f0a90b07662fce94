/** Compares responses, requests at the provider and sums of two gateways: all but ids, times and ports. */

export type Outcome = { status: number; headers: [string, string][]; body: string }

/** Their values are made anew for each response, or count time. */
const VOLATILE_HEADERS = new Set([
  'date',
  'x-request-id',
  'request-id',
  'x-gatehouse-request-id',
  'x-gatehouse-overhead-ms',
  'age',
])
const VOLATILE_PARTS: readonly [RegExp, string][] = [
  [
    /\b(chatcmpl|cmpl|resp|msg|req|rs|fc|call|toolu|task|img|modr|embd|rerank|item|conv|sk|file)[-_][A-Za-z0-9]{8,}/g,
    '$1-ID',
  ],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID'],
  [/"responseId":\s*"[^"]*"/g, '"responseId":"ID"'],
  [/"(created|created_at|completed_at|createTime)":\s*(\d{10,}|"[^"]*")/g, '"$1":0'],
  [/127\.0\.0\.1:\d+/g, 'LOOPBACK'],
  [/\b\d+(\.\d+)?(ms|s)\b/g, 'TIME'],
]

export function stable(text: string): string {
  return VOLATILE_PARTS.reduce((rest, [pattern, put]) => rest.replace(pattern, put), text)
}

export async function outcomeOf(response: Response): Promise<Outcome> {
  const body = await response.text().catch((error: Error) => `broken off: ${error.message}`)
  const headers = [...response.headers]
    .filter(([name]) => !VOLATILE_HEADERS.has(name))
    .map(([name, value]): [string, string] => [name, /reset|remaining|cost/.test(name) ? '' : stable(value)])
  return { status: response.status, headers, body: stable(body) }
}

/** JSON texts, whole or as the data of events, with their members in one order and numbers with their own digits. */
function canonical(text: string): string {
  return text.replace(/[{[].*[}\]]/gs, (json) => (isJson(json) ? sorted(json) : json.replace(/\{.*\}/g, sorted)))
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function sorted(text: string): string {
  if (!isJson(text)) return text
  const value: unknown = JSON.parse(text, (_, inner: unknown, context?: { source?: string }) =>
    typeof inner === 'number' ? `number ${context?.source ?? inner}` : inner,
  )
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  )
}

/** True if two texts differ in nothing but the order of JSON members. */
export const differInOrderOnly = (before: string, after: string): boolean =>
  before !== after && canonical(before) === canonical(after)

/** The first place where two texts differ, with some characters around; undefined: they are the same. */
export function differenceOf(before: string, after: string): string | undefined {
  if (before === after) return undefined
  let at = 0
  while (at < before.length && before[at] === after[at]) at++
  const excerpt = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 90))
  return `at ${at}\n    before ${excerpt(before)}\n    after  ${excerpt(after)}`
}
