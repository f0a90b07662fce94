/** Names the owners of budgets for the operator. */
import { splitAt } from '../store/ledger/budget-sums.ts'

type Named = {
  tokens: readonly { token_id: string; name: string }[]
  projects: readonly { project_id: string; name: string }[]
}

/** From the scope of a budget, such as `token:tok_a`, to `token laptop`. An owner that is no longer there keeps its id. */
export function scopeNames({ tokens, projects }: Named): (scope_key: string) => string {
  const names = new Map([
    ...tokens.map(({ token_id, name }) => [token_id, name] as const),
    ...projects.map(({ project_id, name }) => [project_id, name] as const),
  ])
  const nameOf = (id: string) => names.get(id) ?? id
  return (scope_key) => {
    const [kind = '', id = ''] = splitAt(scope_key, ':')
    if (kind !== 'user') return id === '' ? kind : `${kind} ${nameOf(id)}`
    const [owner = '', user = ''] = splitAt(id, '/')
    return `end user ${user} of ${nameOf(owner)}`
  }
}
