/** How one can log in to this gateway, besides a link that was printed. */
import { useQuery } from '@tanstack/react-query'
import { call } from '../api/client.ts'

export function useLoginMethods(): string[] {
  const { data } = useQuery({
    queryKey: ['GET /admin/v1/login', {}],
    queryFn: ({ signal }) => call('GET /admin/v1/login', { signal, withoutLogin: true }),
    staleTime: 300_000,
    retry: false,
  })
  return data?.methods ?? []
}
