/** By what the request log is summed up, and the rows in which the sums are stored. */

export const SUM_DIMENSIONS = ['project', 'token', 'model', 'provider', 'user', 'tag'] as const
export type SumDimension = (typeof SUM_DIMENSIONS)[number]

export type ScopeKind = 'all' | SumDimension

/** `key`: empty for `all`. */
export type Scope = { kind: ScopeKind; key: string }

/** By which dimensions the calls of a scope are summed. */
export const PARTS_OF: Record<ScopeKind, readonly SumDimension[]> = {
  all: SUM_DIMENSIONS,
  project: ['token', 'model', 'provider', 'user', 'tag'],
  token: ['project', 'model'],
  model: ['project', 'token', 'provider'],
  provider: ['project', 'model'],
  user: ['project'],
  tag: ['project'],
}

/** `sums`: by project, token, model and provider; `users`, `tags`: by project and end user or tag. JSON text. */
export type MinuteRow = { id: string; start: number; sums: string; users: string | null; tags: string | null }

type PartColumn = `${SumDimension}s`
export const partColumn = (name: SumDimension): PartColumn => `${name}s`

/** `period` in seconds, `start` in unix seconds; `total` and the parts are JSON text. */
export type SumsRow = { period: number; kind: ScopeKind; scope: string; start: number; total: string } & Record<
  PartColumn,
  string | null
>
