/** A chat model that a new token may call, for a sample. */
import { useApiList } from '../../api/hooks.ts'
import type { Token } from '../../api/types.ts'

const CHAT = 'chatcompat'

export function useFirstModel(token: Pick<Token, 'models'> | undefined): string {
  const { rows } = useApiList('GET /admin/v1/models', {}, { enabled: token !== undefined, limit: 200 })
  const chat = rows.filter(({ families, status }) => families.includes(CHAT) && status !== 'retired')
  const allowed = chat.find(({ id }) => token?.models.some((pattern) => fits(id, pattern)))
  return (allowed ?? chat[0])?.id ?? 'sandbox/general'
}

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
