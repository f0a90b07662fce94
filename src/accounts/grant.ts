/** What a secret gives: its token, the project of the token, and the caller that both make. */
import { networkMatcher } from '../kit/address.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller, Project, Token } from '../spec/token.ts'
import type { StoredProject, StoredToken } from '../store/account-store.ts'
import { callerOf } from './caller.ts'

export type Grant = {
  token: StoredToken
  caller: Caller
  /** From when the secret is invalid, in unix seconds. */
  ends_at: number | null
  /** Why its project lets none of its tokens in. */
  refusal: string | undefined
  /** From when its project is over, in unix seconds. */
  project_ends_at: number | null
  /** Absent: every address. */
  isAllowedFrom: ((address: string) => boolean) | undefined
}

type GrantParts = { token: StoredToken; project: StoredProject | undefined; hash: string }

/** `hash`: of the secret by which the token was found, its present or its previous one. */
export function grantOf({ token, project, hash }: GrantParts): Grant {
  const { project_id, expires_at } = token
  const isDeleted = project_id !== null && (!project || project.deleted_at !== null)
  return {
    token,
    caller: callerOf(token, project),
    ends_at: hash === token.hash ? expires_at : earliest(expires_at, token.previous_expires_at ?? 0),
    refusal: isDeleted ? 'was deleted' : project?.disabled ? 'is disabled' : undefined,
    project_ends_at: project?.expires_at ?? null,
    isAllowedFrom: addressCheck(project ? [token, project] : [token]),
  }
}

const earliest = (one: number | null, other: number): number => (one === null ? other : Math.min(one, other))

/** An address must be allowed by all of them. */
function addressCheck(accounts: readonly (Token | Project)[]): Grant['isAllowedFrom'] {
  const checks = accounts.flatMap(({ allowed_addresses }) => (allowed_addresses ? [networkMatcher(allowed_addresses)] : [])) // biome-ignore format: short
  return checks.length === 0 ? undefined : (address) => checks.every((isAllowed) => isAllowed(address))
}

/** Why the project of the token is not active; undefined: it is, or there is none. */
export function projectTrouble({ refusal, project_ends_at }: Grant, now: () => number): string | undefined {
  return refusal ?? (project_ends_at !== null && project_ends_at <= now() ? 'has expired' : undefined)
}

/** Throws `project_disabled` where the project of the token is not active. */
export function assertProjectActive(grant: Grant, now: () => number): void {
  const trouble = projectTrouble(grant, now)
  if (trouble === undefined) return
  throw new GatewayError('project_disabled', `The project ${grant.token.project_id} of this token ${trouble}.`)
}

/** Throws `address_not_allowed`; the address is read only for a token that is limited to some. */
export function assertAddress({ token, isAllowedFrom }: Grant, from: { readonly address: string }): void {
  if (!isAllowedFrom) return
  const { address } = from
  if (isAllowedFrom(address)) return
  throw new GatewayError(
    'address_not_allowed',
    `The token ${token.token_id} may not be used from the address ${shownAddress(address)}.`,
  )
}

/** A forwarded address is what somebody wrote in a header. */
const shownAddress = (address: string): string => (/^[\w.:%[\]]{1,64}$/.test(address) ? address : 'of this request')
