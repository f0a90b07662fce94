/** Which strings are secrets of a provider, and the encoded forms in which a provider may repeat one. */
import type { ProviderKind } from '../../config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../../config/schema/schema.ts'
import { isRecord } from '../../kit/json.ts'

/** Shorter strings occur in responses by chance, and a key of that length protects nothing. */
export const MIN_SECRET_BYTES = 8
/**
 * Placeholders that people use as a key for a local server that needs none: replacing these words would garble responses.
 * The last ones are field names and values of the protocols: without them a response could not be parsed at all.
 */
const PLACEHOLDERS = new Set([
  'anything',
  'api-key',
  'apikey-unused',
  'changeme',
  'dummy-key',
  'gatehouse',
  'gatehouse-has-no-key',
  'llama.cpp',
  'lm-studio',
  'localhost',
  'no-api-key',
  'no-key-needed',
  'no-key-required',
  'not-needed',
  'not-required',
  'not-used',
  'placeholder',
  'sk-no-key-required',
  'sk-placeholder',
  'test-key',
  'undefined',
  'your-api-key',
  'password',
  ...['arguments', 'assistant', 'candidates', 'completed', 'completion', 'completions', 'function', 'messages'],
  ...['reasoning', 'response', 'text_delta', 'thinking', 'tool_calls', 'tool_use', 'usagemetadata'],
])

/** Matches names of headers, options and query parameters whose value is a credential. */
const CREDENTIAL_NAME = /auth|cookie|credential|key|password|private|secret|session|signature|token/i
/** Names that match but hold no credential: a page token comes from the provider, which expects it back. */
const NOT_A_CREDENTIAL =
  /^(idempotency-key|x-idempotency-key|anthropic-dangerous-direct-browser-access|(next|prev(ious)?)?[-_]?(page|continuation|sync)[-_]?token)$/i
/** Headers that name an API version, which can occur in generated text. */
const VERSION_NAME = /(^|-)(beta|version)$/i
/** A header with any other name counts as a credential if its value looks random: long, letters and digits, no URL. */
const LOOKS_RANDOM = /^(?=.*[a-z])(?=.*\d)[^\s:/]{16,}$/i
/** `Bearer ...`, `Token ...`, `Key ...`: the scheme is not part of the secret. */
const SCHEME = /^[A-Za-z][\w-]*\s+(?=\S)/
/** A request signature is useless to anyone else, and each request has its own. */
const SIGNED_REQUEST = /^AWS4-HMAC-SHA256\s/

export const isSecret = (text: string): boolean =>
  Buffer.byteLength(text) >= MIN_SECRET_BYTES && !PLACEHOLDERS.has(text.toLowerCase())

/** Real keys are longer, or have digits. */
const MAX_WORD_CHARACTERS = 20

/** Whether a key looks like an ordinary word: removing it from responses would remove the same word of generated text. */
export const looksLikeWord = (key: string): boolean =>
  isSecret(key) && key.length <= MAX_WORD_CHARACTERS && /^[a-z]+$/i.test(key)

export const isCredentialName = (name: string): boolean => CREDENTIAL_NAME.test(name) && !NOT_A_CREDENTIAL.test(name)

/** Returns the secrets in the value of a credential header. */
export function secretsInHeader(value: string): string[] {
  if (SIGNED_REQUEST.test(value)) return []
  const credential = value.replace(SCHEME, '')
  const found = [credential]
  if (/^basic\s/i.test(value)) {
    const password = /:(.+)$/s.exec(Buffer.from(credential, 'base64').toString())?.[1]
    if (password !== undefined) found.push(password)
  }
  return found.filter(isSecret)
}

/** Returns the secrets in the query of a URL. */
export function secretsInQuery(url: string): string[] {
  const start = url.indexOf('?')
  if (start === -1) return []
  const pairs = [...new URLSearchParams(url.slice(start))]
  return pairs.filter(([name, value]) => isCredentialName(name) && isSecret(value)).map(([, value]) => value)
}

/** Secrets of the environment that are never sent, only used to sign; all others are learned when they are sent. */
const SIGNING_VARIABLES: { [kind in ProviderKind]?: string[] } = {
  'amazon-bedrock': ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  kling: ['KLING_SECRET_KEY'],
}

export function secretsInEnvironment(kind: ProviderKind, environment: Record<string, string | undefined>): string[] {
  return (SIGNING_VARIABLES[kind] ?? []).flatMap((name) => environment[name] ?? []).filter(isSecret)
}

/** Returns the secrets in a provider's configuration. */
export function secretsInConfig({ key, keys = [], base_url, headers = {}, options = {} }: ProviderConfig): string[] {
  const found = keys.map((one) => one.key)
  if (key !== undefined) found.push(key)
  const url = base_url === undefined ? null : URL.parse(base_url)
  // A user name without a password is an access token.
  if (url) found.push(decodeURIComponent(url.password || url.username))
  for (const [name, value] of Object.entries(headers)) {
    if (isCredentialName(name)) found.push(...secretsInHeader(value))
    else if (!VERSION_NAME.test(name) && LOOKS_RANDOM.test(value)) found.push(value)
  }
  const collect = (value: unknown, isCredential: boolean): void => {
    if (typeof value === 'string' && isCredential) found.push(value)
    else if (isRecord(value)) {
      for (const [name, member] of Object.entries(value)) collect(member, isCredentialName(name))
    }
  }
  collect(options, false)
  return [...new Set(found)].filter(isSecret)
}

/**
 * Returns each form once: plain, percent-encoded, as a JSON string, and the part of base64 that does not depend on the bytes
 * around the secret, for each of its three offsets within a group of four characters, in both alphabets.
 */
export function formsOf(secret: string): string[] {
  const forms = new Set<string>()
  const add = (form: string) => {
    for (const one of [form, ...jsonForms(form)]) forms.add(one)
  }
  add(secret)
  const percent = encodeURIComponent(secret).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  add(percent)
  add(encodeURIComponent(secret))
  add(percent.replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase()))
  for (let before = 0; before < 3; before++) {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    // Six bits a character: characters that also hold bits of a neighbouring byte are left out.
    const [first, end] = [Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6)]
    const base64 = bytes.toString('base64').slice(first, end)
    add(base64)
    add(base64.replaceAll('+', '-').replaceAll('/', '_'))
    forms.add(encodeURIComponent(base64))
  }
  return [...forms].filter((form) => form.length >= MIN_SECRET_BYTES)
}

/** JSON encoders differ: in `/` (PHP), in HTML characters (Go), in `+` and quotes (.NET). */
function jsonForms(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1)
  const unicode = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`
  const html = plain.replace(/[<>&]/g, unicode)
  const dotnet = text.replace(/["'&<>+`]/g, (found) =>
    unicode(found).replace(/[\da-f]{4}$/, (hex) => hex.toUpperCase()),
  )
  return [plain, plain.replaceAll('/', '\\/'), html, dotnet]
}
