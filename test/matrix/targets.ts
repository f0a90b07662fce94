/** The targets behind the gateway: the sandbox, and a provider on loopback for each native kind. */
import type { ProviderKind } from '../../src/config/schema/provider-kinds.ts'
import type { ModelConfig, ProviderConfig } from '../../src/config/schema/schema.ts'
import { chatcompatWire } from './vendors/chatcompat.ts'
import { contentgenWire } from './vendors/contentgen-compat.ts'
import { messagesWire } from './vendors/messages-compat.ts'
import { responsesWire } from './vendors/responses-compat.ts'
import { type ModelScript, startWireVendor, type Wire, type WireVendor } from './vendors/wire-vendor.ts'

type Kind = {
  kind: ProviderKind
  wire: Wire
  /** The path of the base URL. */
  path: string
  /** The provider's own model. */
  model: string
  /** The operator's settings for the provider and the model. */
  provider?: ProviderConfig
  more?: ModelConfig
  unsupported?: Target['unsupported']
}

/** The provider returns reasoning only on request. */
const SUMMARIES: ProviderConfig = { request_defaults: { reasoning_summary: 'auto' } }

const KINDS: Kind[] = [
  { kind: 'chatcompat', wire: chatcompatWire, path: '/v1', model: 'm', more: { fields: ['thinking_enabled'] } },
  { kind: 'messages-compat', wire: messagesWire, path: '/v1', model: 'claude-sonnet-4-6' },
  {
    kind: 'responses-compat',
    wire: responsesWire,
    path: '/v1',
    model: 'gpt-5.1',
    provider: SUMMARIES,
    unsupported: ['stop'],
  },
  { kind: 'contentgen-compat', wire: contentgenWire, path: '/v1beta', model: 'gemini-3.5-flash' },
]

export type Target = {
  name: string
  /** The model that a client requests. */
  model: string
  /** The model that reasons, if it is another. */
  thinker: string
  /** Features that the provider does not support by design and refuses by name. */
  unsupported: readonly 'stop'[]
  /** Absent for the sandbox. */
  vendor: WireVendor | undefined
}

export type Targets = {
  targets: Target[]
  providers: Record<string, ProviderConfig>
  models: Record<string, ModelConfig>
  stop(): Promise<void>
}

const SANDBOX: Target = {
  name: 'sandbox',
  model: 'sandbox/general',
  thinker: 'sandbox/vision',
  unsupported: [],
  vendor: undefined,
}
/** For tables that are created before anything runs. */
export const TARGET_NAMES = [SANDBOX.name, ...KINDS.map(({ kind }) => kind)]

/** Starts every provider once, with an optional script. */
export function startTargets(script?: ModelScript): Targets {
  const started = KINDS.map(({ wire, ...more }) => ({ ...more, vendor: startWireVendor(wire, script) }))
  return {
    targets: [
      SANDBOX,
      ...started.map(({ kind, unsupported = [], vendor }) => ({
        name: kind,
        model: `${kind}/m`,
        thinker: `${kind}/m`,
        unsupported,
        vendor,
      })),
    ],
    providers: Object.fromEntries(
      started.map(({ kind, path, provider = {}, vendor }) => [
        kind,
        { kind, base_url: `${vendor.origin}${path}`, key: 'vendor-key', ...provider },
      ]),
    ),
    models: Object.fromEntries(
      started.map(({ kind, model, more = {} }) => [`${kind}/m`, { targets: [{ provider: kind, model }], ...more }]),
    ),
    async stop() {
      await Promise.all(started.map(({ vendor }) => vendor.stop()))
    },
  }
}
