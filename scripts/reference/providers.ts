/** The kinds and presets of providers: what each one serves is asked of the provider itself. */
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import {
  DEFAULT_ADDRESSES,
  KINDS,
  type KindRow,
  PROVIDER_KINDS,
  type ProviderKind,
} from '../../src/config/schema/provider-kinds.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createGuardedFetch } from '../../src/kit/guarded-fetch.ts'
import { createLog } from '../../src/kit/log.ts'
import { AI_SDK_VENDORS } from '../../src/providers/ai-sdk/vendors.ts'
import { createMedia } from '../../src/providers/media.ts'
import { PRESETS } from '../../src/providers/presets.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { createProvider } from '../../src/providers/registry.ts'
import { createTransport } from '../../src/providers/upstream/transport.ts'
import { code } from './table.ts'

const FAMILIES: [keyof Provider, string][] = [
  ['chat', 'chat'],
  ['embeddings', 'embeddings'],
  ['rerank', 'rerank'],
  ['moderations', 'moderations'],
  ['speech', 'speech'],
  ['transcription', 'transcription'],
  ['images', 'images'],
  ['video', 'videos'],
  ['threeD', '3D models'],
]
/** What the kinds cannot do without. */
const ENVIRONMENT = { GOOGLE_VERTEX_PROJECT: 'p', AWS_REGION: 'us-east-1' }
const clock = systemClock
const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
const media = createMedia({ guardedFetch: createGuardedFetch({ clock }) })
const transport = createTransport({ clock, log })

const parts = { id: 'id', timeouts: DEFAULT_TIMEOUTS, transport, clock, log, media, manual: async () => [] }

type Made = { kind?: ProviderKind; preset?: string; base_url?: string }

export function providerOf(config: Made & { options?: Record<string, unknown> }): Provider {
  return createProvider({ ...parts, environment: ENVIRONMENT, config: { key: 'a-key', ...config } })
}

/** A provider of this kind with only its environment variables. */
export const providerFromEnvironment = (kind: ProviderKind, environment: Record<string, string>): Provider =>
  createProvider({ ...parts, environment, config: { kind } })

const familiesOf = (config: Made): string => {
  const provider = providerOf(config)
  return FAMILIES.filter(([member]) => provider[member])
    .map(([, name]) => name)
    .join(', ')
}

/** Of the package's row: its base URL, and those of families that differ. */
function addressesOf(kind: ProviderKind): string {
  const row = Object.hasOwn(AI_SDK_VENDORS, kind) && AI_SDK_VENDORS[kind as keyof typeof AI_SDK_VENDORS]
  if (!row || typeof row === 'function') return ''
  const others = (['chat', 'images'] as const).flatMap((family) => {
    const baseUrl = row[family]?.baseUrl
    return baseUrl === undefined ? [] : [`of ${family} ${code(baseUrl)}`]
  })
  return [code(row.baseUrl), ...others].join(', ')
}

/** The families, then what it calls, its address and the variables of its key. */
export const kindRows = (): string[][] =>
  PROVIDER_KINDS.map((kind) => {
    const variables = ((KINDS[kind] as KindRow).environment ?? []).map(code).join(', ')
    const address = DEFAULT_ADDRESSES[kind] ?? addressesOf(kind)
    const parts = [KINDS[kind].calls.replace(/\.$/, ''), address, variables].filter(Boolean)
    return [code(kind), familiesOf({ kind, base_url: 'https://api.example.com/v1' }), `${parts.join('; ')}.`]
  })

/** The kind and further APIs; then the address, the variables of the key, and families that the kind lacks. */
export const presetRows = (): string[][] =>
  Object.entries(PRESETS).map(([preset, { kind = 'chatcompat', apis = {}, base_url, key_env }]) => {
    const families = familiesBeyond(familiesOf({ preset }), familiesOf({ kind, base_url }))
    const further = Object.keys(apis).map((api) => `with ${code(api)}`)
    const names = kind === 'chatcompat' ? further : [code(kind), ...further]
    const parts = [code(base_url), key_env.map(code).join(' or '), families].filter(Boolean)
    return [code(preset), names.join(', '), parts.join('; ')]
  })

/** The families of a preset that its kind lacks, or all of them if it lacks some itself. */
function familiesBeyond(own: string, ofKind: string): string {
  const [all, usual] = [own.split(', '), ofKind.split(', ')]
  if (usual.some((family) => !all.includes(family))) return own
  const further = all.filter((family) => !usual.includes(family))
  return further.length === 0 ? '' : `also ${further.join(', ')}`
}
