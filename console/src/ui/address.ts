/** The values that a page keeps in its address: filters, sort, the chosen tab. */
import { useNavigate, useParams, useRouterState } from '@tanstack/react-router'
import type { Search } from '../lib/search.ts'

/** A reader of any value. */
type AnyReader = { read(text: string | undefined): unknown; write(value: never): string | undefined }
type ValuesOf<R> = {
  [Name in keyof R]: R[Name] extends { read(text: string | undefined): infer Value } ? Value : never
}

/**
 * The values by their readers, and a function that changes some of them. A change replaces the address; with
 * `push`, the browser's way back leads to the former one.
 */
export function useAddress<R extends { [name: string]: AnyReader }>(readers: R) {
  const search = useRouterState({ select: (state) => state.location.search as Search })
  const navigate = useNavigate()
  const values = Object.fromEntries(
    Object.entries(readers).map(([name, reader]) => [name, reader.read(search[name])]),
  ) as ValuesOf<R>
  const change = (changes: Partial<ValuesOf<R>>, { push = false } = {}) => {
    const written = Object.entries(changes).map(([name, value]) => [name, readers[name]?.write(value as never)])
    void navigate({
      to: '.',
      // Another filter begins at the first page of a list.
      search: (former: object) => ({ ...former, pages: undefined, ...Object.fromEntries(written) }),
      replace: !push,
      resetScroll: false,
    } as never)
  }
  return [values, change] as const
}

/** The parameters in the path of the page; the rest of a path that ends with `$` is `_splat`. */
export const useRouteParams = (): Record<string, string> => useParams({ strict: false }) as Record<string, string>

/** The values of these names that the address has, for links that keep them. */
export function useKept(names: readonly string[]): Search {
  const search = useRouterState({ select: (state) => state.location.search as Search })
  return Object.fromEntries([...names, 'pages'].flatMap((name) => (search[name] ? [[name, search[name]]] : [])))
}
