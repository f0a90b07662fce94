/** What a client of the vendor's own dialect asks of it in headers. */
export { isEventStream } from '../upstream.ts'

/** Headers that are lists, of which the client and the operator may each have a part. */
const LISTS = new Set(['anthropic-beta', 'openai-beta'])

/** The operator's headers with the client's. Of the same header the operator's counts, unless it is a list: then both. */
export function withClientHeaders(own: Record<string, string>, client: Record<string, string> = {}) {
  const headers = { ...client, ...own }
  for (const name of LISTS) {
    const [asked, set] = [client[name], own[name]]
    if (asked === undefined || set === undefined) continue
    headers[name] = [...new Set([...set.split(','), ...asked.split(',')].map((one) => one.trim()))].join(',')
  }
  return headers
}
