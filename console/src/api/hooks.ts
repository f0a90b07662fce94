/** How a page reads and changes data: queries, lists with a cursor, and acts. */
import {
  keepPreviousData,
  type QueryClient,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { setCurrency } from '../lib/format.ts'
import { setOwnProjects } from '../lib/project.ts'
import { notify, notifyError } from '../lib/toasts.ts'
import { ApiError, type CallOptions, call, callUntyped, type Endpoint } from './client.ts'
import type { Api } from './types.ts'

type ReadOptions = {
  /** Whether to read at all; default: yes. */
  enabled?: boolean
  /** Read again so often. */
  refetch_ms?: number | false
  /** Whether what was read for other options stands until the new data is there. */
  keepPrevious?: boolean
}

/** Without their types, of which there is one for each endpoint. */
const keyOf = (...parts: unknown[]): unknown[] => parts

/** Data of one endpoint. */
export function useApi<E extends Endpoint>(
  endpoint: E,
  options: CallOptions<E>,
  { enabled = true, refetch_ms = false, keepPrevious = false }: ReadOptions = {},
): UseQueryResult<Api[E]['response'], Error> {
  return useQuery({
    queryKey: keyOf(endpoint, options),
    queryFn: ({ signal }) => callUntyped(endpoint, { ...(options as object), signal }),
    enabled,
    refetchInterval: refetch_ms,
    ...(keepPrevious && { placeholderData: (previous: Api[E]['response'] | undefined) => previous as never }),
  }) as UseQueryResult<Api[E]['response'], Error>
}

type ListEndpoint = { [E in Endpoint]: Api[E]['response'] extends { data: unknown[] } ? E : never }[Endpoint]
type RowOf<E extends ListEndpoint> = Api[E]['response'] extends { data: (infer Row)[] } ? Row : never
type ListPage<E extends ListEndpoint> = Api[E]['response'] & { data: RowOf<E>[]; next_cursor?: string | null }

/** A list that is read page by page: `rows` of all pages that were read, and `more` to read the next one. */
export function useApiList<E extends ListEndpoint>(
  endpoint: E,
  options: CallOptions<E>,
  { enabled = true, refetch_ms = false, keepPrevious = false, limit = 100 }: ReadOptions & { limit?: number } = {},
) {
  const { query } = options as { query?: object }
  const list = useInfiniteQuery({
    queryKey: keyOf(endpoint, options, limit),
    queryFn: ({ signal, pageParam }) => {
      const cursor = pageParam === '' ? {} : { cursor: pageParam }
      const page = { ...(options as object), query: { ...query, limit, ...cursor }, signal }
      return callUntyped<ListPage<E>>(endpoint, page)
    },
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    enabled,
    refetchInterval: refetch_ms,
    ...(keepPrevious && { placeholderData: keepPreviousData }),
  })
  return {
    /** The answer of the first page, for what it says besides. */
    first: list.data?.pages[0],
    rows: list.data?.pages.flatMap(({ data }) => data) ?? [],
    isLoading: list.isPending && enabled,
    error: list.error,
    hasMore: list.hasNextPage,
    isLoadingMore: list.isFetchingNextPage,
    more: () => void list.fetchNextPage(),
    reload: () => void list.refetch(),
  }
}

/** Reads no more rows than this of a list that is wanted whole. */
const MAX_WHOLE_ROWS = 10_000
const LONGEST_PAGE = 200

/** All rows of a list that is short enough to be filtered and sorted in the browser. */
export function useApiAll<E extends ListEndpoint>(
  endpoint: E,
  options: CallOptions<E>,
  { enabled = true, refetch_ms = false }: ReadOptions = {},
) {
  const { query } = options as { query?: object }
  const all = useQuery({
    queryKey: keyOf(endpoint, options, 'all'),
    queryFn: async ({ signal }) => {
      const rows: RowOf<E>[] = []
      let cursor: string | null | undefined = ''
      do {
        const page: Record<string, unknown> = { ...query, limit: LONGEST_PAGE, cursor }
        const read = await callUntyped<ListPage<E>>(endpoint, { ...(options as object), query: page, signal })
        rows.push(...read.data)
        cursor = read.next_cursor
      } while (cursor && rows.length < MAX_WHOLE_ROWS)
      return rows
    },
    enabled,
    refetchInterval: refetch_ms,
  })
  return {
    rows: all.data ?? [],
    isLoading: all.isPending && enabled,
    error: all.error,
    reload: () => void all.refetch(),
  }
}

type ActOptions<E extends Endpoint> = {
  /** The start of endpoints whose data the act changes, such as `GET /admin/v1/tokens`; `$`: only that one. */
  changes?: string[]
  /** Whether the gateway takes the change over by itself, within seconds: the data is read again then. */
  isLate?: true
  /** Shown when it is done. */
  done?: string | ((response: Api[E]['response']) => string)
  onDone?(response: Api[E]['response']): void
  /** Whether the caller shows the error itself, such as beside a field. */
  showsError?: boolean
}

const LATE_MILLISECONDS = [1_500, 3_000, 6_000]

/** An act of a person, which changes something. Its error is shown, unless the page does that itself. */
export function useAct<E extends Endpoint>(
  endpoint: E,
  { changes = [], isLate, done, onDone, showsError }: ActOptions<E> = {},
) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (options: CallOptions<E>) => callUntyped<Api[E]['response']>(endpoint, options as object),
    onSuccess: (response) => {
      const readAgain = () => {
        for (const change of changes) invalidate(client, change)
      }
      readAgain()
      if (isLate) for (const ms of LATE_MILLISECONDS) setTimeout(readAgain, ms)
      if (done) notify(typeof done === 'function' ? done(response) : done)
      onDone?.(response)
    },
    onError: (error) => {
      if (!showsError) notifyError(error)
    },
  })
}

/** Reads again what starts with this endpoint; only the endpoint itself where `$` follows. */
export function invalidate(client: QueryClient, start: string): void {
  const isChanged = (name: string) => (start.endsWith('$') ? `${name}$` === start : name.startsWith(start))
  void client.invalidateQueries({ predicate: ({ queryKey: [name] }) => isChanged(String(name)) })
}

/** Who uses the console, with what they may do. */
export function useMe() {
  const { data } = useQuery({ ...meQuery, enabled: false })
  return data
}

export const meQuery = {
  queryKey: ['GET /admin/v1/me', {}],
  async queryFn({ signal }: { signal?: AbortSignal }) {
    const me = await call('GET /admin/v1/me', signal ? { signal } : {})
    setCurrency(me.currency)
    setOwnProjects(me.memberships.map(({ project_id }) => project_id))
    return me
  },
  staleTime: 60_000,
} as const

/** A failure of the network or of the gateway is tried again; what the caller did wrong is not. */
export const shouldRetry = (failures: number, error: Error): boolean =>
  failures < 2 && !(error instanceof ApiError && error.status < 500)
