/** Finds the one token that an operator names: by id, by name, or by a prefix of its id or its visible prefix. */
import { sha256 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredToken } from '../store/store.ts'

/** A shorter prefix is more likely a typing error than a choice. */
const SHORTEST_START = 5
const MAX_LISTED = 10

/**
 * An exact id, secret or name comes before the start of an id or of a visible prefix. Among tokens of one name those
 * in force come before the revoked. Throws invalid_value when none or several fit.
 */
export function chooseToken(tokens: StoredToken[], asked: string): StoredToken {
  const which = asked.trim().replace(/(\.\.\.|…)$/, '') // as lists show a prefix
  const hash = sha256(which)
  const exact = tokens.find((token) => token.token_id === which || token.hash === hash)
  if (exact) return exact
  const named = tokens.filter((token) => token.name === which)
  const inForce = named.filter((token) => !token.disabled)
  const started = which.length < SHORTEST_START ? [] : tokens.filter((token) => startsWith(token, which))
  const fitting = inForce.length > 0 ? inForce : named.length > 0 ? named : started
  const [one, another] = fitting
  if (one && !another) return one
  throw new GatewayError('invalid_value', one ? severalFit(fitting) : noneFits(which, tokens), { param: 'token' })
}

const startsWith = ({ token_id, prefix }: StoredToken, which: string): boolean =>
  token_id.startsWith(which) || prefix.startsWith(which)

function severalFit(fitting: StoredToken[]): string {
  const listed = fitting.slice(0, MAX_LISTED).map(({ token_id, name }) => `${token_id} (${name})`)
  const more = fitting.length > MAX_LISTED ? ` and ${fitting.length - MAX_LISTED} more` : ''
  return `Several tokens fit: ${listed.join(', ')}${more}. Give the id of one.`
}

/** The operator's text is repeated only when it cannot be a secret. */
function noneFits(which: string, tokens: StoredToken[]): string {
  const shown = which.length < 20 || which.startsWith('tok_') ? ` ${JSON.stringify(which)}` : ' what was given'
  return `No token has${shown} as its id, name or prefix; there ${tokens.length === 1 ? 'is 1' : `are ${tokens.length}`} in all.`
}
