/** A chat model that a new token may call, for a sample. */
import { useApiList } from '../../api/hooks.ts'
import type { AdminModel, Token } from '../../api/types.ts'
import { CALLABLE } from '../../ui/model-field.tsx'

export function useFirstModel(token: Pick<Token, 'models'> | undefined): string {
  // What its one pattern surely has: `acme/` of `acme/*`.
  const [q = ''] = token?.models.length === 1 ? (token.models[0]?.split('*') ?? []) : []
  const query = { q, family: 'chatcompat', status: CALLABLE }
  const { rows } = useApiList('GET /admin/v1/models', { query }, { enabled: token !== undefined, limit: 200 })
  const chat = rows.toSorted((one, other) => Number(isFailing(one)) - Number(isFailing(other)))
  const allowed = chat.find(({ id }) => token?.models.some((pattern) => fits(id, pattern)))
  return (allowed ?? chat[0])?.id ?? 'sandbox/general'
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
