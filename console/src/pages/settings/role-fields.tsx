/** The fields of a form that gives somebody a role: name, role, and the project of a role that has one. */
import { useApiList } from '../../api/hooks.ts'
import { errorOf, TextField } from '../../ui/field.tsx'
import { Combobox, Select } from '../../ui/select.tsx'
import { isOfProject, ROLES, type Role } from './roles.ts'

export type RoleDraft = { name: string; role: Role; project_id: string }

type RoleFieldsProps = {
  draft: RoleDraft
  onChange(change: Partial<RoleDraft>): void
  error: Error | null
  /** The roles that may be given. */
  roles: Role[]
}

export function RoleFields({ draft, onChange, error, roles }: RoleFieldsProps) {
  const { rows: projects } = useApiList('GET /admin/v1/projects', {}, { limit: 200 })
  return (
    <>
      <TextField
        label="Name"
        required
        maxLength={100}
        autoFocus
        value={draft.name}
        onChange={(name) => onChange({ name })}
        error={errorOf(error, 'name')}
      />
      <Select
        label="Role"
        value={draft.role}
        options={ROLES.filter(({ value }) => roles.includes(value)).map(({ value, label, note }) => ({
          value,
          label,
          note,
        }))}
        onChange={(role) => onChange({ role: role as Role })}
      />
      {isOfProject(draft.role) && (
        <Combobox
          label="Project"
          placeholder="Find a project"
          value={draft.project_id}
          options={projects.map(({ project_id, name }) => ({ value: project_id, label: name }))}
          onChange={(project_id) => onChange({ project_id })}
          error={errorOf(error, 'project_id')}
        />
      )}
    </>
  )
}

/** As the admin API takes it. */
export const roleOrder = ({ name, role, project_id }: RoleDraft) => ({
  name,
  role,
  ...(isOfProject(role) && project_id !== '' && { project_id }),
})
