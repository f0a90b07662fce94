/** Reads the conditions of a search of the request log: the same names on the command line and in the admin API. */
import { endUserName } from '../../kit/end-user-name.ts'
import { toNano } from '../../spec/price.ts'
import type { RequestFilter } from '../../store/requests/request-row.ts'

/** What each condition means. */
export const REQUEST_CONDITIONS = {
  request_id: 'The id of the request, which clients may repeat.',
  token: 'The id of a token.',
  project: 'The id of a project.',
  model: 'The full id of a model.',
  target: 'A provider and its model, such as acme/large.',
  provider: 'The id of a provider.',
  status: 'An HTTP status such as 429, or a class such as 5xx.',
  error: 'An error code; any: every error.',
  user: 'The end user.',
  session: 'The session.',
  tag: 'A tag, or a pair of metadata as key:value.',
  trace_id: 'The id of the trace.',
  min_cost: 'Only what was charged this much or more, in the currency of the ledger.',
  min_ms: 'Only what took this many milliseconds or longer.',
} as const
type ConditionName = keyof typeof REQUEST_CONDITIONS

const COLUMNS = { token: 'token_id', project: 'project_id' } as const
const MAX_CHARACTERS = 512

/** `read`: undefined where the condition is not given. `fail`: throws what is wrong with a value. */
export function readRequestFilter(
  read: (name: ConditionName) => string | undefined,
  fail: (name: ConditionName, rule: string) => never,
): RequestFilter {
  const filter: RequestFilter = {}
  for (const name of Object.keys(REQUEST_CONDITIONS) as ConditionName[]) {
    const value = read(name)
    if (value === undefined) continue
    if (value === '' || (value.length > MAX_CHARACTERS && name !== 'user'))
      fail(name, `must have 1 to ${MAX_CHARACTERS} characters`)
    if (name === 'status') filter.status = readStatus(value) ?? fail(name, 'must be a status such as 429, or 5xx')
    else if (name === 'min_cost') filter.min_cost = toNano(readNumber(value) ?? fail(name, 'must be a number'))
    else if (name === 'min_ms') filter.min_ms = readNumber(value) ?? fail(name, 'must be a number')
    else if (name === 'user') filter.end_user = endUserName(value) ?? value
    else if (name === 'token' || name === 'project') filter[COLUMNS[name]] = value
    else filter[name] = value
  }
  return filter
}

/** A class as its first digit. */
function readStatus(text: string): number | undefined {
  if (/^[1-5]xx$/i.test(text)) return Number(text[0])
  return /^([1-5]\d\d|0)$/.test(text) ? Number(text) : undefined
}

const readNumber = (text: string): number | undefined => (/^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined)
