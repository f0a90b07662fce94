/** The names of projects, for lists that have their ids. */
import { useApi } from '../../api/hooks.ts'
import type { Names } from './columns.tsx'

/** More projects than these are shown by their id. */
const LIMIT = 200

export function useProjectNames(): Names {
  const { data } = useApi('GET /admin/v1/projects', { query: { limit: LIMIT } })
  const names = new Map(data?.data.map(({ project_id, name }) => [project_id, name]))
  return (project_id) => names.get(project_id) || project_id
}
