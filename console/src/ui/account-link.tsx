/** Links to tokens and projects by their names: by the id where there is none, or it may not be seen. */
import { useApi } from '../api/hooks.ts'
import { A } from './button.tsx'

/** An empty id: nothing is asked for. */
export function useTokenName(token_id: string): string {
  const { data } = useApi('GET /admin/v1/tokens', { query: { q: token_id, limit: 1 } }, { enabled: token_id !== '' })
  return data?.data.find((token) => token.token_id === token_id)?.name || token_id
}

export function useProjectName(project_id: string): string {
  const query = { q: project_id, limit: 1 }
  const { data } = useApi('GET /admin/v1/projects', { query }, { enabled: project_id !== '' })
  return data?.data.find((project) => project.project_id === project_id)?.name || project_id
}

export const TokenLink = ({ id }: { id: string }) => <A to={`/tokens/${id}`}>{useTokenName(id)}</A>

export const ProjectLink = ({ id }: { id: string }) => <A to={`/projects/${id}`}>{useProjectName(id)}</A>
