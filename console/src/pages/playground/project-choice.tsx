/** The project that is billed for the calls of the playground. */
import { useApiList, useMe } from '../../api/hooks.ts'
import { Select } from '../../ui/select.tsx'

const MAX_PROJECTS = 200

type ProjectProps = { value: string; onChange(project_id: string): void }

/** Who is bound to a project calls in that one, and has no choice here. */
export function ProjectChoice({ value, onChange }: ProjectProps) {
  const me = useMe()
  const isFree = me !== undefined && me.project_id === null
  const { rows } = useApiList('GET /admin/v1/projects', {}, { enabled: isFree, limit: MAX_PROJECTS })
  if (!isFree) return null
  const options = rows.map(({ project_id, name }) => ({ value: project_id, label: name || project_id }))
  return (
    <Select
      isCompact
      label="Bill to"
      value={value}
      options={[{ value: '', label: 'no project' }, ...options]}
      onChange={onChange}
    />
  )
}
