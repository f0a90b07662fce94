/** Removes secrets and personal data from the text of a recorded response, in every form in which they may stand there. */

const LEAST = 8
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
/** A value of a member that names one request, response, call or account. */
const ID_MEMBER = /"(?:id|[a-z_]*_id|[a-z]+Id|name)"\s*:\s*"([^"\\]{12,})"/g
/** An id has a digit after its prefix; names of models and operations have blanks, slashes or no long run. */
const LOOKS_RANDOM = /^(?:[a-z]+[-_])*(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{10,}$/
const PATTERNS: readonly [RegExp, string][] = [
  // Organizations, projects, users and accounts.
  [
    /\b(org|proj|project|user|acct|account|team|workspace|wrkspc|ws)([-_])(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{6,}/g,
    '$1$2removed',
  ],
  // Keys by their customary prefixes, whole or with their middle hidden.
  [
    /\b(?:sk|pk|rk|gsk|xai|tsk|msy|hf|r8|key|AIza|ya29|AKIA|ASIA)[-_.]?[A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_-]*/g,
    'removed-key',
  ],
  [/\b(?:sk|pk|rk|gsk|xai|tsk|msy|hf|r8)[-_][A-Za-z0-9_-]{16,}/g, 'removed-key'],
  [/\b(?:AIza|ya29\.|AKIA|ASIA)[A-Za-z0-9_-]{12,}/g, 'removed-key'],
  [/\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g, 'removed-token'],
  [/\b(Bearer|Basic|Key)\s+[A-Za-z0-9._~+/=-]{8,}/g, '$1 removed'],
  [/[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]+/g, 'user@example.com'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, '192.0.2.1'],
  [
    /(?<![0-9A-Za-z:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![0-9A-Za-z:])|(?<![0-9A-Za-z:])(?:[0-9a-f]{1,4}:){1,6}:(?:[0-9a-f]{1,4})?/gi,
    '2001:db8::1',
  ],
  // What signs an address.
  [/(https?:\/\/[^\s"'\\?]+)\?[^\s"'\\]*/g, '$1?removed'],
]

/** `secrets` are the values themselves: keys, and whatever else the environment holds under the name of one. */
export function removeSecrets(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) for (const form of formsOf(secret)) clean = clean.replaceAll(form, 'removed-key')
  for (const secret of secrets) clean = withoutPieces(clean, secret)
  for (const [pattern, put] of PATTERNS) clean = clean.replaceAll(pattern, put)
  return withStandIns(clean)
}

/** The environment's secrets, by the names of their variables. */
export function secretsIn(environment: Record<string, string | undefined>): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    /KEY|TOKEN|SECRET|PASS|CREDENTIAL/i.test(name) && value !== undefined && value.length >= LEAST ? [value] : [],
  )
}

/** A secret as it is, escaped for JSON or an address, and in base64 with whatever stands around it. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const base64 = [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
  // Behind one or two other bytes, base64 looks different, but for the ends.
  const shifted = [1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(4, -4),
  )
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), ...base64, ...shifted]
    .filter((form) => form.length >= LEAST)
    .sort((one, other) => other.length - one.length)
}

/** Providers repeat parts of a key in their errors. */
function withoutPieces(text: string, secret: string): string {
  let clean = text
  for (let at = 0; at + LEAST <= secret.length; at++) {
    if (!clean.includes(secret.slice(at, at + LEAST))) continue
    let length = secret.length - at
    while (length > LEAST && !clean.includes(secret.slice(at, at + length))) length--
    clean = clean.replaceAll(secret.slice(at, at + length), 'removed-key')
  }
  return clean
}

/** The same id becomes the same stand-in, of the same length and with the same prefix. */
function withStandIns(text: string): string {
  let clean = text
  let count = 0
  const ids = new Set([...text.matchAll(ID_MEMBER)].map(([, id = '']) => id).filter((id) => LOOKS_RANDOM.test(id)))
  for (const id of ids) {
    if (UUID.test(id)) continue
    const prefix = /^(?:[a-z]+[-_])*/.exec(id)?.[0] ?? ''
    clean = clean.replaceAll(id, prefix + String(++count).padStart(id.length - prefix.length, '0'))
  }
  return clean.replaceAll(UUID, '00000000-0000-4000-8000-000000000000')
}
