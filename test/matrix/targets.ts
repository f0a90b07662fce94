/** What stands behind the gateway: the sandbox, and a vendor on loopback for each native kind; one line each. */
import type { ModelConfig, ProviderConfig, ProviderKind } from '../../src/config/schema.ts'
import { chatcompatWire } from './vendors/chatcompat.ts'
import { messagesWire } from './vendors/messages-compat.ts'
import { type Played, playVendor, type Wire } from './vendors/play.ts'

/** A kind of provider, the wire that its vendor speaks, the end of its base address, the vendor's own model, and what
 * the operator says of it. */
const KINDS: { kind: ProviderKind; wire: Wire; path: string; model: string; more?: ModelConfig }[] = [
  { kind: 'chatcompat', wire: chatcompatWire, path: '/v1', model: 'm', more: { fields: ['thinking_enabled'] } },
  { kind: 'messages-compat', wire: messagesWire, path: '/v1', model: 'claude-sonnet-4-6' },
]

export type Target = {
  name: string
  /** The model that a client asks for. */
  model: string
  /** The model that thinks, where it is another. */
  thinker: string
  /** None behind the sandbox. */
  vendor: Played | undefined
}

export type Targets = {
  targets: Target[]
  providers: Record<string, ProviderConfig>
  models: Record<string, ModelConfig>
  stop(): Promise<void>
}

const SANDBOX = { name: 'sandbox', model: 'sandbox/general', thinker: 'sandbox/vision', vendor: undefined }
/** For tables that are written before anything runs. */
export const TARGET_NAMES = [SANDBOX.name, ...KINDS.map(({ kind }) => kind)]

/** Starts every vendor once. */
export function startTargets(): Targets {
  const started = KINDS.map(({ wire, ...more }) => ({ ...more, vendor: playVendor(wire) }))
  return {
    targets: [
      SANDBOX,
      ...started.map(({ kind, vendor }) => ({ name: kind, model: `${kind}/m`, thinker: `${kind}/m`, vendor })),
    ],
    providers: Object.fromEntries(
      started.map(({ kind, path, vendor }) => [kind, { kind, base_url: `${vendor.origin}${path}`, key: 'vendor-key' }]),
    ),
    models: Object.fromEntries(
      started.map(({ kind, model, more = {} }) => [`${kind}/m`, { targets: [{ provider: kind, model }], ...more }]),
    ),
    async stop() {
      await Promise.all(started.map(({ vendor }) => vendor.stop()))
    },
  }
}
