/** The names of projects and tokens, for what has their ids. */
import { useApi } from '../../api/hooks.ts'
import type { Names } from './columns.tsx'

/** More projects than these are shown by their id. */
const LIMIT = 200

export function useProjectNames(): Names {
  const { data } = useApi('GET /admin/v1/projects', { query: { limit: LIMIT } })
  const names = new Map(data?.data.map(({ project_id, name }) => [project_id, name]))
  return (project_id) => names.get(project_id) || project_id
}

/** The id where there is no such token, or it may not be seen. */
export function useTokenName(token_id: string): string {
  const query = { q: token_id, limit: 1 }
  const { data } = useApi('GET /admin/v1/tokens', { query }, { enabled: token_id !== '' })
  return data?.data.find((token) => token.token_id === token_id)?.name || token_id
}
