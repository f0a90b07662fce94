/** Finds the one token or project that an operator names: by id, by name, or a token by the start of its id or prefix. */
import { sha256 } from '../kit/secret.ts'
import { GatewayError, invalidValue } from '../spec/error.ts'
import type { Project, Token } from '../spec/token.ts'

/** A shorter prefix is more likely a typing error than a choice. */
const SHORTEST_PREFIX = 5
const MAX_LISTED = 10

/** As an operator names a token, or by its id alone: its row is read once, and it is an error where there is none. */
export type TokenReference = string | { token_id: string }

/** The hash of its secret is known only where its store is at hand. */
type MayHaveHash = Token & { hash?: string; previous_hash?: string | null }

/**
 * An exact id, secret or name takes precedence over a prefix of an id or of a visible prefix. Among tokens of one name
 * valid ones take precedence over revoked ones. Throws invalid_value when none or several fit.
 */
export function chooseToken<T extends MayHaveHash>(tokens: T[], reference: string): T {
  const name = reference.trim().replace(/(\.\.\.|…)$/, '') // as lists show a prefix
  const hash = sha256(name)
  const exact = tokens.find((token) => token.token_id === name || token.hash === hash || token.previous_hash === hash)
  if (exact) return exact
  const named = tokens.filter((token) => token.name === name)
  const valid = named.filter((token) => !token.disabled)
  const started = name.length < SHORTEST_PREFIX ? [] : tokens.filter((token) => startsWith(token, name))
  const fitting = valid.length > 0 ? valid : named.length > 0 ? named : started
  const [one, another] = fitting
  if (one && !another) return one
  throw invalidValue('token', one ? severalFit(fitting) : noneFits(name, tokens))
}

const startsWith = ({ token_id, prefix }: MayHaveHash, text: string): boolean =>
  token_id.startsWith(text) || prefix.startsWith(text)

function severalFit(fitting: MayHaveHash[]): string {
  const listed = fitting
    .slice(0, MAX_LISTED)
    .map(({ token_id, name, created_at }) => `${token_id} (${name}, created ${dayText(created_at)})`)
  const more = fitting.length > MAX_LISTED ? ` and ${fitting.length - MAX_LISTED} more` : ''
  return `Several tokens fit: ${listed.join(', ')}${more}. Give the id of one.`
}

const dayText = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10)

/** The operator's text is repeated only when it cannot be a secret. */
function noneFits(name: string, tokens: MayHaveHash[]): string {
  const shown = name.length < 20 || name.startsWith('tok_') ? ` ${JSON.stringify(name)}` : ' what was given'
  return `No token has${shown} as its id, name or prefix; there ${tokens.length === 1 ? 'is 1' : `are ${tokens.length}`} in all.`
}

/** A client may have sent an id of any length. */
export const noToken = (token_id: string) =>
  new GatewayError('object_not_found', `There is no token ${JSON.stringify(token_id.slice(0, 100))}.`)

export const revoked = ({ token_id }: Pick<Token, 'token_id'>, why: 'revoked' | 'expired' = 'revoked') =>
  invalidValue('token', `The token ${token_id} is ${why}; create a new one instead.`)

/** By its id, else by its name. Throws invalid_value. */
export function chooseProject<P extends Project>(projects: P[], which: string): P {
  const reference = which.trim()
  const named = (): P | undefined => projects.find(({ name }) => name === reference)
  const found = projects.find(({ project_id }) => project_id === reference) ?? named()
  if (found) return found
  throw invalidValue('project', noProjectFits(projects, reference))
}

export function noProjectFits(all: readonly Project[], reference: string): string {
  const listed = all.slice(0, MAX_LISTED).map(({ project_id, name }) => `${name} (${project_id})`)
  const more = all.length > MAX_LISTED ? ` and ${all.length - MAX_LISTED} more` : ''
  const has = all.length === 0 ? 'there are none' : `there are ${listed.join(', ')}${more}`
  return `No project has ${JSON.stringify(reference)} as its id or name; ${has}.`
}
