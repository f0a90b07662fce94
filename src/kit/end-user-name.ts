/** The name of an end user, as it is stored and searched. */
import { sha256 } from './secret.ts'

/** A longer name, or one that would garble a log or a list or that no store can hold, is replaced by an id that stays the same. */
const MAX_CHARACTERS = 256
const CONTROL = /\p{Cc}/u

/** Undefined: it is empty. */
export function endUserName(given: string): string | undefined {
  const trimmed = given.trim()
  if (trimmed === '') return undefined
  const isPlain = trimmed.length <= MAX_CHARACTERS && !CONTROL.test(trimmed) && trimmed.isWellFormed()
  return isPlain ? trimmed : `sha256:${sha256(trimmed)}`
}
