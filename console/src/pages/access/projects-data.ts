/** The projects that a form or a list names: those that the person may use. */
import { useApiList } from '../../api/hooks.ts'
import type { Project } from '../../api/types.ts'
import type { Option } from '../../ui/select.tsx'

/** So many can be chosen from; others are found on the page of projects. */
const MOST = 200

export function useProjects(): { projects: Project[]; nameOf(project_id: string | null): string } {
  const { rows } = useApiList('GET /admin/v1/projects', {}, { limit: MOST })
  return {
    projects: rows,
    nameOf: (project_id) => rows.find((project) => project.project_id === project_id)?.name ?? project_id ?? '',
  }
}

export const projectOptions = (projects: Project[]): Option[] =>
  projects.map(({ project_id, name }) => ({ value: project_id, label: name }))
