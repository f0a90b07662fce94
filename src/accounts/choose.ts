/** Finds the one token that an operator names: by id, by name, or by a prefix of its id or its visible prefix. */
import { sha256 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredToken } from '../store/account-store.ts'

/** A shorter prefix is more likely a typing error than a choice. */
const SHORTEST_PREFIX = 5
const MAX_LISTED = 10

/**
 * An exact id, secret or name takes precedence over a prefix of an id or of a visible prefix. Among tokens of one name
 * valid ones take precedence over revoked ones. Throws invalid_value when none or several fit.
 */
export function chooseToken(tokens: StoredToken[], reference: string): StoredToken {
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
  throw new GatewayError('invalid_value', one ? severalFit(fitting) : noneFits(name, tokens), { param: 'token' })
}

const startsWith = ({ token_id, prefix }: StoredToken, text: string): boolean =>
  token_id.startsWith(text) || prefix.startsWith(text)

function severalFit(fitting: StoredToken[]): string {
  const listed = fitting.slice(0, MAX_LISTED).map(({ token_id, name }) => `${token_id} (${name})`)
  const more = fitting.length > MAX_LISTED ? ` and ${fitting.length - MAX_LISTED} more` : ''
  return `Several tokens fit: ${listed.join(', ')}${more}. Give the id of one.`
}

/** The operator's text is repeated only when it cannot be a secret. */
function noneFits(name: string, tokens: StoredToken[]): string {
  const shown = name.length < 20 || name.startsWith('tok_') ? ` ${JSON.stringify(name)}` : ' what was given'
  return `No token has${shown} as its id, name or prefix; there ${tokens.length === 1 ? 'is 1' : `are ${tokens.length}`} in all.`
}
