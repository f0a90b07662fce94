/** The filters of the request log: their names, how the address has them, and which of them a live event meets. */

/** `facet`: whether the gateway counts its values. */
export type Filter = {
  name: FilterName
  label: string
  help: string
  facet?: true
  kind?: 'number'
  example: string
}

export const FILTER_NAMES = [
  'status',
  'error',
  'model',
  'provider',
  'target',
  'project',
  'token',
  'user',
  'session',
  'tag',
  'request_id',
  'trace_id',
  'min_ms',
  'min_cost',
] as const
export type FilterName = (typeof FILTER_NAMES)[number]
export type FilterValues = Partial<Record<FilterName, string>>

export const FILTERS: readonly Filter[] = [
  {
    name: 'status',
    label: 'Status',
    help: 'A status such as 429, or a class such as 5xx.',
    facet: true,
    example: '5xx',
  },
  { name: 'error', label: 'Error', help: 'An error code, or "any" for every error.', facet: true, example: 'any' },
  { name: 'model', label: 'Model', help: 'The full id of a model.', facet: true, example: 'openai/gpt-5' },
  { name: 'provider', label: 'Provider', help: 'The id of a provider.', facet: true, example: 'openai' },
  {
    name: 'target',
    label: 'Target',
    help: 'A provider and its own name of the model.',
    facet: true,
    example: 'acme/large',
  },
  { name: 'project', label: 'Project', help: 'The id of a project.', facet: true, example: 'proj_…' },
  { name: 'token', label: 'Token', help: 'The id of a token.', facet: true, example: 'tok_…' },
  { name: 'user', label: 'End user', help: 'Whom the client named as its user.', facet: true, example: 'ann' },
  { name: 'session', label: 'Session', help: 'From the header x-gatehouse-session.', example: 'session-1' },
  { name: 'tag', label: 'Tag', help: 'A tag, or a pair of metadata as key:value.', facet: true, example: 'team:blue' },
  {
    name: 'request_id',
    label: 'Request id',
    help: 'As the response named it; clients may repeat one.',
    example: 'req_…',
  },
  {
    name: 'trace_id',
    label: 'Trace id',
    help: 'The id of a trace, 32 hexadecimal digits.',
    example: '0af7651916cd43dd…',
  },
  {
    name: 'min_ms',
    label: 'Slower than',
    help: 'Only what took so many milliseconds or longer.',
    kind: 'number',
    example: '5000',
  },
  {
    name: 'min_cost',
    label: 'Cost from',
    help: 'Only what was charged so much or more.',
    kind: 'number',
    example: '0.05',
  },
]

/** Those that are set, without names that are no filter. */
export function filtersOf(search: Record<string, string | undefined>): FilterValues {
  const values: FilterValues = {}
  for (const name of FILTER_NAMES) {
    const value = search[name]?.trim()
    if (value) values[name] = value
  }
  return values
}

/** Why a value cannot be searched; undefined: it can. */
export function troubleOf(name: FilterName, value: string): string | undefined {
  if (value.trim() === '') return 'Type a value.'
  if (value.length > 512 && name !== 'user') return 'At most 512 characters.'
  if (name === 'status' && !/^([1-5]\d\d|[1-5]xx|0)$/i.test(value))
    return 'A status such as 429, or a class such as 5xx.'
  if ((name === 'min_ms' || name === 'min_cost') && !/^\d{1,9}(\.\d{1,9})?$/.test(value)) return 'A number.'
  return undefined
}

/** What a text typed into the search field is: the id of a request, a trace, a token or a session. */
export function filterOfText(text: string): FilterName {
  if (/^[0-9a-f]{32}$/i.test(text)) return 'trace_id'
  if (/^tok_/.test(text)) return 'token'
  if (/^proj_/.test(text)) return 'project'
  if (/^([1-5]\d\d|[1-5]xx)$/i.test(text)) return 'status'
  return 'request_id'
}

/** What a live event has of a row of the log. */
export type FilteredRow = {
  request_id: string
  token_id: string
  project_id: string | null
  end_user: string | null
  session: string | null
  trace_id: string | null
  tags: readonly string[]
  model: string
  provider: string
  target: string
  status: number
  error: string | null
  total_ms: number
  cost: number | null
}

const COLUMN_OF = { token: 'token_id', project: 'project_id', user: 'end_user' } as const

/** Whether a row meets all filters, as the search of the gateway decides it. */
export function meets(row: FilteredRow, filters: FilterValues): boolean {
  for (const name in filters) {
    const value = filters[name as FilterName]
    if (value !== undefined && !meetsOne(row, name as FilterName, value)) return false
  }
  return true
}

function meetsOne(row: FilteredRow, name: FilterName, value: string): boolean {
  switch (name) {
    case 'status':
      return /xx$/i.test(value) ? Math.floor(row.status / 100) === Number(value[0]) : row.status === Number(value)
    case 'error':
      return value === 'any' ? row.error !== null : row.error === value
    case 'tag':
      return row.tags.includes(value)
    case 'min_ms':
      return row.total_ms >= Number(value)
    case 'min_cost':
      return row.cost !== null && row.cost >= Number(value)
    case 'token':
    case 'project':
    case 'user':
      return row[COLUMN_OF[name]] === value
    default:
      return row[name] === value
  }
}
