/** What stands behind the gateway: the sandbox, and a vendor on loopback for each native kind; one line each. */
import type { ProviderKind } from '../../src/config/provider-kinds.ts'
import type { ModelConfig, ProviderConfig } from '../../src/config/schema.ts'
import { chatcompatWire } from './vendors/chatcompat.ts'
import { contentgenWire } from './vendors/contentgen-compat.ts'
import { messagesWire } from './vendors/messages-compat.ts'
import { responsesWire } from './vendors/responses-compat.ts'
import { type ModelScript, startWireVendor, type Wire, type WireVendor } from './vendors/wire-vendor.ts'

type Kind = {
  kind: ProviderKind
  wire: Wire
  /** The end of the base address. */
  path: string
  /** The vendor's own model. */
  model: string
  /** What the operator says of the provider, and of the model. */
  provider?: ProviderConfig
  more?: ModelConfig
  unsupported?: Target['unsupported']
}

/** The vendor tells what it thought only where it is asked to. */
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
  /** The model that a client asks for. */
  model: string
  /** The model that thinks, where it is another. */
  thinker: string
  /** What the vendor cannot do by its own design: it is refused by name. */
  unsupported: readonly 'stop'[]
  /** None behind the sandbox. */
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
/** For tables that are written before anything runs. */
export const TARGET_NAMES = [SANDBOX.name, ...KINDS.map(({ kind }) => kind)]

/** Starts every vendor once; what they think may be given. */
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
