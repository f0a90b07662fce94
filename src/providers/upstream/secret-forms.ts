/** Which texts are secrets of a provider, and the forms in which a provider may repeat one. */
import type { ProviderKind } from '../../config/provider-kinds.ts'
import type { ProviderConfig } from '../../config/schema.ts'
import { isRecord } from '../../kit/json.ts'

/** Shorter texts occur in answers by chance, and a key of that length protects nothing. */
export const MIN_SECRET_BYTES = 8
/**
 * What people write as a key where a local server asks for none: replacing these words would garble answers. The last
 * ones are words of the protocols, without which an answer could not be read at all.
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

/** Names of headers, options and query parameters whose value is a credential. */
const CREDENTIAL_NAME = /auth|cookie|credential|key|password|private|secret|session|signature|token/i
/** ... although they have such a name: a page token comes from the provider, which expects it back. */
const NOT_A_CREDENTIAL =
  /^(idempotency-key|x-idempotency-key|anthropic-dangerous-direct-browser-access|(next|prev(ious)?)?[-_]?(page|continuation|sync)[-_]?token)$/i
/** Headers that name a version of an API, which models write about. */
const VERSION_NAME = /(^|-)(beta|version)$/i
/** A header of another name is one all the same if its value looks like it: long, letters and digits, no address. */
const LOOKS_RANDOM = /^(?=.*[a-z])(?=.*\d)[^\s:/]{16,}$/i
/** `Bearer ...`, `Token ...`, `Key ...`: the word is no part of the secret. */
const SCHEME = /^[A-Za-z][\w-]*\s+(?=\S)/
/** Signatures of single requests are of no use to anybody else, and another one is made for each request. */
const SIGNED_REQUEST = /^AWS4-HMAC-SHA256\s/

export const isSecret = (text: string): boolean =>
  Buffer.byteLength(text) >= MIN_SECRET_BYTES && !PLACEHOLDERS.has(text.toLowerCase())

export const isCredentialName = (name: string): boolean => CREDENTIAL_NAME.test(name) && !NOT_A_CREDENTIAL.test(name)

/** The secrets in the value of a header that holds a credential. */
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

/** The secrets in the query of an address. */
export function secretsInQuery(url: string): string[] {
  const start = url.indexOf('?')
  if (start === -1) return []
  const pairs = [...new URLSearchParams(url.slice(start))]
  return pairs.filter(([name, value]) => isCredentialName(name) && isSecret(value)).map(([, value]) => value)
}

/** Secrets of the environment that are never sent, only signed with; all others are learned when they are sent. */
const SIGNING_VARIABLES: { [kind in ProviderKind]?: string[] } = {
  'amazon-bedrock': ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  kling: ['KLING_SECRET_KEY'],
}

export function secretsInEnvironment(kind: ProviderKind, environment: Record<string, string | undefined>): string[] {
  return (SIGNING_VARIABLES[kind] ?? []).flatMap((name) => environment[name] ?? []).filter(isSecret)
}

/** The secrets that the operator wrote of a provider. */
export function secretsInConfig({ key, base_url, headers = {}, options = {} }: ProviderConfig): string[] {
  const found = key === undefined ? [] : [key]
  const url = base_url === undefined ? null : URL.parse(base_url)
  // A user name without a password is a token.
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
 * Each form once: plain, percent-encoded, as a JSON string, and the part of base64 that is the same whatever stands
 * around the secret, for each of its three places within a group of four characters, in both alphabets.
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
    // Six bits a character: those that hold bits of a neighbour are not the secret's own.
    const [first, end] = [Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6)]
    const base64 = bytes.toString('base64').slice(first, end)
    add(base64)
    add(base64.replaceAll('+', '-').replaceAll('/', '_'))
    forms.add(encodeURIComponent(base64))
  }
  return [...forms].filter((form) => form.length >= MIN_SECRET_BYTES)
}

/** Writers of JSON differ: in `/` (PHP), in what could be HTML (Go), in `+` and quotes (.NET). */
function jsonForms(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1)
  const unicode = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`
  const html = plain.replace(/[<>&]/g, unicode)
  const dotnet = text.replace(/["'&<>+`]/g, (found) =>
    unicode(found).replace(/[\da-f]{4}$/, (hex) => hex.toUpperCase()),
  )
  return [plain, plain.replaceAll('/', '\\/'), html, dotnet]
}
