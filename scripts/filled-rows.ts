/** The projects, tokens and rows of the request log of a filled store: the same for the same time in every run. */
import type { RequestRow } from '../src/store/requests/request-row.ts'

/** How many of each there are. */
export type Counts = { rows: number; models: number; tokens: number; projects: number; users: number }

const PROVIDERS = 8
/** One token in twenty makes 7 of 10 calls. */
const TOKEN_SKEW = 8
const TEAMS = ['search', 'support', 'checkout', 'mobile', 'data', 'legal', 'research', 'growth']
const FAMILIES = ['swift', 'large', 'vision', 'coder', 'reason', 'mini']
const FAILURES = [
  [429, 'rate_limit_exceeded'],
  [502, 'upstream_error'],
  [504, 'upstream_timeout'],
  [400, 'invalid_value'],
] as const

const nameOf = (names: readonly string[], at: number): string => {
  const name = names[at % names.length] ?? ''
  return at < names.length ? name : `${name}-${Math.floor(at / names.length) + 1}`
}
export const teamOf = (at: number): string => nameOf(TEAMS, at)
const id = (prefix: string, at: number): string => `${prefix}_${at.toString(36).padStart(16, '0')}`
export const tokenOf = (at: number): string => id('tok', at)
export const projectOf = (at: number): string => id('proj', at)
const providerOf = (at: number): string => `vendor-${(at % PROVIDERS) + 1}`
export const modelOf = (at: number): string => `${providerOf(at)}/${nameOf(FAMILIES, Math.floor(at / PROVIDERS))}`

/** The same numbers in every run. */
export function createRandom(): () => number {
  let state = 42
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

type RowParts = { row_id: number; at_ms: number; counts: Counts; random: () => number }

export function rowOf({ row_id, at_ms, counts, random }: RowParts): RequestRow {
  /** From 0 on, the small ones more often. */
  const pick = (count: number, skew = 3): number => Math.floor(random() ** skew * count)
  const token = pick(counts.tokens, TOKEN_SKEW)
  // A token mostly calls one of a few models.
  const model_at = Math.floor(counts.models * (((token * 0.618_034) % 1) ** 3 + pick(4) / 97)) % counts.models
  const [model, provider] = [modelOf(model_at), providerOf(model_at)]
  const failure = random() < 0.03 ? FAILURES[pick(FAILURES.length)] : undefined
  const isHit = failure === undefined && random() < 0.05
  const first_byte_ms = isHit ? 1 : Math.round(2_000 + random() ** 4 * 20_000) / 10
  const total_ms = first_byte_ms + (isHit ? 0.5 : Math.round(random() ** 3 * 200_000) / 10)
  const [input_tokens, output_tokens] = [20 + pick(4_000), failure ? 0 : 1 + pick(1_500)]
  const charge = isHit || failure ? 0 : input_tokens * 300 + output_tokens * 1_500
  return {
    row_id,
    at_ms,
    request_id: `req_${row_id.toString(36).padStart(12, '0')}${Math.floor(random() * 2 ** 48).toString(36)}`,
    token_id: tokenOf(token),
    project_id: projectOf(token % counts.projects),
    end_user: random() < 0.4 ? `user-${(token * 97 + pick(50)) % counts.users}` : null,
    session: random() < 0.3 ? `session-${pick(counts.users)}` : null,
    trace_id: random() < 0.1 ? row_id.toString(16).padStart(32, '0') : null,
    family: 'chatcompat',
    model,
    provider,
    target: `${provider}/general`,
    status: failure?.[0] ?? 200,
    error: failure?.[1] ?? null,
    total_ms,
    cost: charge,
    tags: random() < 0.2 ? [`env:${random() < 0.8 ? 'production' : 'test'}`, `feature-${pick(40)}`] : [],
    detail: {
      method: 'POST',
      path: '/v1/chat/completions',
      outcome: 'done',
      stream: true,
      first_byte_ms,
      ...(isHit && { cache: 'hit' }),
      units: { input_tokens, output_tokens },
      provider_cost: Math.round(charge * 0.8),
      attempts: isHit ? [] : [{ target: `${provider}/general`, ms: first_byte_ms }],
    },
  }
}
