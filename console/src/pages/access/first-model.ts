/** A chat model that a new token may call, for a sample. */
import { useApiList } from '../../api/hooks.ts'
import type { AdminModel, Token } from '../../api/types.ts'

const CHAT = 'chatcompat'

export function useFirstModel(token: Pick<Token, 'models'> | undefined): string {
  const { rows } = useApiList('GET /admin/v1/models', {}, { enabled: token !== undefined, limit: 200 })
  const chat = rows
    .filter(({ families, status }) => families.includes(CHAT) && status !== 'retired')
    .sort((one, other) => Number(isFailing(one)) - Number(isFailing(other)))
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
