/** A chat model that a new token may call, for a sample. */
import { useApi, useApiList } from '../../api/hooks.ts'
import type { AdminModel, Project, Token } from '../../api/types.ts'
import { CALLABLE } from '../../ui/model-field.tsx'

type Allowed = Pick<Token, 'models' | 'families'>

/** Undefined: it may call none, or that is not known yet. */
export function useFirstModel(token: Token | undefined): string | undefined {
  const project_id = token?.project_id ?? ''
  const params = { project_id }
  const project = useApi('GET /admin/v1/projects/{project_id}', { params }, { enabled: project_id !== '' })
  // What its one pattern surely has: `acme/` of `acme/*`.
  const [q = ''] = token?.models.length === 1 ? (token.models[0]?.split('*') ?? []) : []
  const query = { q, family: 'chatcompat', status: CALLABLE }
  const { rows } = useApiList('GET /admin/v1/models', { query }, { enabled: token !== undefined, limit: 200 })
  if (token === undefined || (project_id !== '' && !project.data)) return undefined
  return firstModel(rows, [token, project.data])
}

/** The first that the token and its project may call; one whose targets fail only where there is no other. */
export function firstModel(models: AdminModel[], accounts: (Allowed | Project | undefined)[]): string | undefined {
  const isAllowed = ({ id }: AdminModel, { models, families }: Allowed) =>
    models.some((pattern) => fits(id, pattern)) && (families?.includes('chatcompat') ?? true)
  const allowed = models.filter(
    (model) => !model.is_disabled && accounts.every((account) => !account || isAllowed(model, account)),
  )
  return (allowed.find((model) => !isFailing(model)) ?? allowed[0])?.id
}

/** Whether a first call of it would probably fail. Who is bound to a project is shown no targets. */
const isFailing = ({ targets }: AdminModel): boolean =>
  targets.length > 0 && targets.every(({ health }) => health.state !== 'available' || health.consecutive_failures > 0)

/** As the gateway matches: `*` stands for any characters. */
function fits(id: string, pattern: string): boolean {
  const [start = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return id === pattern
  let at = start.length
  if (!id.startsWith(start)) return false
  for (const part of rest) {
    const found = id.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return rest.at(-1) === '' || id.endsWith(rest.at(-1) ?? '')
}
