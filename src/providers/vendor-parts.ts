/** What an adapter is made of. */
import type { ProviderConfig, Timeouts } from '../config/schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Media } from './media.ts'
import type { Transport } from './upstream/transport.ts'

export type VendorParts = {
  /** The operator's name for it. */
  id: string
  config: ProviderConfig
  /** The time-outs of the whole house; the provider's own win. */
  timeouts: Required<Timeouts>
  transport: Transport
  clock: Clock
  log: Log
  /** Where a preset's key comes from when the configuration gives none. */
  environment?: Record<string, string | undefined>
  /** Fetches media by their address, for vendors that take only bytes. */
  media?: Media
}
