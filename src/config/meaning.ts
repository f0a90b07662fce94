/** What a schema cannot say of a configuration file: that its parts fit together. */
import { HOST_WORDS, isHost } from './environment.ts'
import { nearest } from './nearest.ts'
import type { Path } from './read-yaml.ts'
import { type FileConfig, type ModelConfig, type ProviderConfig, RANGED_FIELDS, type Range } from './schema.ts'
import { checkSuccessors } from './successors.ts'

export type Trouble = { path: Path; part: 'key' | 'value'; message: string }

/** What the rooms above know of vendors; without it, names are not held against it. */
export type KnownVendors = {
  presets: readonly string[]
  /** Providers that are there without being written, where the search for providers is on. */
  discovered: readonly string[]
  /** The sandbox's models, by id. */
  sandbox: Readonly<Record<string, ModelConfig>>
}

export type MeaningParts = {
  config: FileConfig
  vendors: KnownVendors | undefined
  /** What the environment says of the search for providers; undefined leaves it to the file. */
  discover: boolean | undefined
  /** Unix seconds. */
  now: number
}

type Say = (path: Path, message: string, part?: Trouble['part']) => void

/** Members that were found faulty before are undefined here, and are passed over. */
export function meaningTroubles(parts: MeaningParts): Trouble[] {
  const out: Trouble[] = []
  const say: Say = (path, message, part = 'value') => void out.push({ path, part, message })
  const { config } = parts
  checkServer(config, say)
  checkPatterns(config, say)
  for (const [id, provider] of present(config.providers)) checkProvider({ id, provider, parts, say })
  for (const [id, model] of present(config.models)) checkModel({ id, model, parts, say })
  const builtIn = config.sandbox === false ? {} : parts.vendors?.sandbox
  const models = new Map(present({ ...builtIn, ...config.models }))
  // A faulty entry is still an entry: that it cannot be read is told once, at its own place.
  const written = (id: string) => Object.hasOwn(config.models ?? {}, id)
  const mayExist = (id: string) => written(id) || isFoundElsewhere(id, parts)
  for (const { id, message } of checkSuccessors({ models, now: parts.now, mayExist })) {
    say(['models', id, 'replaced_by'], message)
  }
  return out
}

function present<T>(table: Record<string, T> | undefined): [string, T][] {
  return Object.entries(table ?? {}).filter(([, entry]) => entry !== undefined)
}

function checkServer({ server }: FileConfig, say: Say): void {
  if (!server) return
  if (server.host !== undefined && !isHost(server.host)) {
    say(['server', 'host'], `found ${JSON.stringify(server.host)}, must be ${HOST_WORDS}`)
  }
  if (server.base_url !== undefined) checkAddress(['server', 'base_url'], server.base_url, say)
  if (server.files_base_url !== undefined) checkFilesAddress(server.files_base_url, server.base_url, say)
  for (const [index, origin] of (server.cors_origins ?? []).entries()) {
    if (origin === undefined || origin === '*' || URL.parse(origin)?.origin === origin) continue
    say(['server', 'cors_origins', index], 'must be "*" or an origin such as https://app.example.com, without a path')
  }
}

/** The host alone tells files from the rest, so that it must be another one, and there is nothing below it. */
function checkFilesAddress(files: string, base_url: string | undefined, say: Say): void {
  const path: Path = ['server', 'files_base_url']
  checkAddress(path, files, say)
  const url = URL.parse(files)
  if (url && url.pathname !== '/') say(path, 'has a path; must be an origin such as https://files.example.com')
  if (url && base_url !== undefined && URL.parse(base_url)?.host === url.host) {
    say(path, 'has the host of `base_url`; must be another one, so that nothing in a file runs in its name')
  }
}

/** Addresses may hold secrets where they should not, so they are not repeated. */
function checkAddress(path: Path, text: string, say: Say): void {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    say(path, 'must be an http or https address, such as https://api.example.com/v1')
  } else if (url.username || url.password) {
    say(path, 'holds a user name or password; give them as `key` or in `headers`')
  } else if (url.search || url.hash || text.endsWith('?') || text.endsWith('#')) {
    say(path, 'holds a query or fragment (from "?" or "#" on); must end with its path')
  }
}

function checkPatterns({ tokens }: FileConfig, say: Say): void {
  for (const [index, pattern] of (tokens?.models ?? []).entries()) {
    if (pattern === undefined) continue
    const trouble = patternTrouble(pattern)
    if (trouble) say(['tokens', 'models', index], trouble)
  }
}

/** What is wrong with a pattern of model ids, if anything; `*` is its only special character. */
export function patternTrouble(pattern: string): string | undefined {
  if (pattern === '') return 'found an empty pattern, must be a model id or a pattern such as "acme/*"'
  const odd = /[\s,?{}[\]]/.exec(pattern)?.[0]
  if (odd === undefined) return undefined
  const name = /\s/.test(odd) ? 'white space' : JSON.stringify(odd)
  return `found ${JSON.stringify(pattern)} with ${name} in it; a pattern is one model id in which "*" stands for anything`
}

/** Kinds that speak to any vendor of their shape; the others know their vendor's address. */
const ADDRESSED: readonly string[] = ['chatcompat', 'chatcompat-video']

type ProviderParts = { id: string; provider: ProviderConfig; parts: MeaningParts; say: Say }

function checkProvider({ id, provider, parts, say }: ProviderParts): void {
  const path = ['providers', id]
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id)) {
    say(path, `found ${JSON.stringify(id)}, must be letters, digits, ".", "_" and "-", and no "/"`, 'key')
  }
  if (id === 'sandbox' && parts.config.sandbox !== false && provider.kind !== 'sandbox') {
    say(path, 'is the name of the built-in sandbox; use another name, or set `sandbox: false`', 'key')
  }
  if (provider.base_url !== undefined) checkAddress([...path, 'base_url'], provider.base_url, say)
  const needsAddress = ADDRESSED.includes(provider.kind ?? 'chatcompat')
  if (needsAddress && !('preset' in provider) && !('base_url' in provider)) {
    say(path, 'needs `base_url`, or `preset` for a known vendor', 'key')
  }
  const presets = parts.vendors?.presets
  if (provider.preset !== undefined && presets && !presets.includes(provider.preset)) {
    const meant = nearest(provider.preset, presets)
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
    const known = `${[...presets].sort().join(', ')}${hint} (for any other vendor leave it out and give base_url)`
    say([...path, 'preset'], `found ${JSON.stringify(provider.preset)} (string), must be one of ${known}`)
  }
  if (provider.key !== undefined && !/^[\x21-\x7e]+$/.test(provider.key)) {
    say([...path, 'key'], 'holds a space, a line break or a character outside ASCII (not shown); it could not be sent')
  }
  for (const [name, value] of present(provider.headers)) checkHeader([...path, 'headers', name], value, say)
}

/** The transport's own, and those that say where a message ends. */
const RESERVED_HEADERS = ['connection', 'content-length', 'content-type', 'host', 'transfer-encoding', 'upgrade']

function checkHeader(path: Path, value: string, say: Say): void {
  const name = String(path.at(-1))
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    say(path, `found ${JSON.stringify(name)}, must be the name of an HTTP header`, 'key')
  } else if (RESERVED_HEADERS.includes(name.toLowerCase())) {
    say(path, 'is set by the gateway itself and cannot be given', 'key')
  }
  if (!/^[\t\x20-\x7e]*$/.test(value)) {
    say(path, 'holds a line break or a character outside ASCII (not shown); it could not be sent')
  }
}

type ModelParts = { id: string; model: ModelConfig; parts: MeaningParts; say: Say }

function checkModel({ id, model, parts, say }: ModelParts): void {
  const path = ['models', id]
  if (!/^[^\s/]+(\/[^\s/]+)*$/.test(id)) {
    say(path, `found ${JSON.stringify(id)}, must be like "provider/model", without white space or empty parts`, 'key')
  } else if (!('targets' in model)) {
    checkOwnTarget({ id, model, parts, say })
  }
  for (const [index, target] of (model.targets ?? []).entries()) {
    const trouble = target?.provider === undefined ? undefined : providerTrouble(target.provider, parts)
    if (trouble) say([...path, 'targets', index, 'provider'], `found "${target.provider}", which ${trouble}`)
  }
  for (const field of RANGED_FIELDS) {
    const range = model.limits?.[field]
    if (range) checkRange([...path, 'limits', field], range, say)
  }
  if (model.when_retired === 'redirect' && !('replaced_by' in model)) {
    say([...path, 'when_retired'], 'found "redirect" (string), but the model has no `replaced_by` to redirect to')
  }
  const { deprecated_at, retired_at } = model
  if (deprecated_at !== undefined && retired_at !== undefined && deprecated_at > retired_at) {
    const found = `found ${deprecated_at} (number)`
    say([...path, 'deprecated_at'], `${found}, must not be after \`retired_at\`, which is ${retired_at}`)
  }
}

/** A model without targets is served by the provider that its id names. */
function checkOwnTarget({ id, parts, say }: ModelParts): void {
  const slash = id.indexOf('/')
  const trouble = providerTrouble(id.slice(0, Math.max(0, slash)), parts)
  if (slash === -1) say(['models', id], 'needs `targets`, since its id names no provider', 'key')
  else if (trouble)
    say(['models', id], `has no \`targets\`, so "${id.slice(0, slash)}" serves it, which ${trouble}`, 'key')
}

function providerTrouble(name: string, { config, vendors, discover }: MeaningParts): string | undefined {
  const known = Object.keys(config.providers ?? {})
  if (config.sandbox !== false && !known.includes('sandbox')) known.push('sandbox')
  if (discover ?? config.discover) known.push(...(vendors?.discovered ?? []).filter((id) => !known.includes(id)))
  if (known.includes(name)) return undefined
  const meant = nearest(name, known)
  const hint = meant === undefined ? '' : ` (did you mean "${meant}"?)`
  return `is no provider${hint}; there ${known.length === 0 ? 'are none' : `is ${known.join(', ')}`}`
}

function checkRange(path: Path, range: Range, say: Say): void {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY, default: preset } = range
  if (minimum > maximum) {
    say([...path, 'minimum'], `found ${minimum} (number), must not be above \`maximum\`, which is ${maximum}`)
  } else if (preset !== undefined && preset < minimum) {
    say([...path, 'default'], `found ${preset} (number), must not be below \`minimum\`, which is ${minimum}`)
  } else if (preset !== undefined && preset > maximum) {
    say([...path, 'default'], `found ${preset} (number), must not be above \`maximum\`, which is ${maximum}`)
  }
}

/** Whether a model that the file lacks may come from the sandbox or from a provider that is asked for its models. */
function isFoundElsewhere(id: string, { config, discover, vendors }: MeaningParts): boolean {
  const provider = id.slice(0, Math.max(0, id.indexOf('/')))
  if (discover ?? config.discover) return true
  if (provider === 'sandbox' && config.sandbox !== false && !vendors) return true
  return config.providers?.[provider]?.discover === true
}
