/** The path of a request below its provider, checked before anything is compared or sent, and the patterns that it may match. */
import { matchesGlob } from '../../kit/glob.ts'
import { GatewayError } from '../../spec/error.ts'

/** `segments`: decoded, for patterns. `sent`: encoded again from these, so that what is sent is what was compared. */
type CheckedPath = { segments: string[]; sent: string }

const MAX_PATH_CHARACTERS = 4_096
/** Left as they are by `encodeURIComponent` or allowed in a segment as they are (RFC 3986, section 3.3), but for `;`. */
const PLAIN = /%(3A|40|24|2C|2B|3D|26)/g
/** Separators in disguise, parameters of a segment, which some servers cut off, an escape of an escape, and control characters. */
const NOT_IN_A_SEGMENT = /[/\\;%?#\p{Cc}]/u

/** `path`: as it was sent, with its slash. Throws `invalid_value` for what another server could read in another way. */
export function checkPath(path: string): CheckedPath {
  if (path.length > MAX_PATH_CHARACTERS) throw wrongPath(`may have at most ${MAX_PATH_CHARACTERS} characters`)
  const segments = path.slice(1).split('/').map(decoded)
  for (const segment of segments) {
    if (segment === '') throw wrongPath('must not have empty segments')
    if (segment === '.' || segment === '..') throw wrongPath('must not have segments of dots')
    if (NOT_IN_A_SEGMENT.test(segment)) {
      throw wrongPath(
        'must not have a slash, a backslash, a semicolon, a percent sign or a control character in a segment',
      )
    }
  }
  const sent = segments.map((one) => encodeURIComponent(one).replace(PLAIN, decodeURIComponent)).join('/')
  return { segments, sent: `/${sent}` }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw wrongPath('must be percent-encoded UTF-8')
  }
}

const wrongPath = (rule: string) => new GatewayError('invalid_value', `The path below the provider ${rule}.`)

/** `*` is any part of one segment, `**` any number of segments, none included. */
export function matchesPath(pattern: string, segments: readonly string[]): boolean {
  // reachable[at]: the parts of the pattern so far can match the first `at` segments.
  let reachable = [true, ...segments.map(() => false)]
  for (const part of pattern.slice(1).split('/')) {
    const next: boolean[] = []
    for (let at = 0; at <= segments.length; at++) {
      next[at] =
        part === '**'
          ? reachable[at] === true || (at > 0 && next[at - 1] === true)
          : at > 0 && reachable[at - 1] === true && matchesGlob(part, segments[at - 1] ?? '')
    }
    reachable = next
  }
  return reachable[segments.length] === true
}
