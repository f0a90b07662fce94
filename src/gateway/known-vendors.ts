/** Lists the vendors of this version, which the configuration is checked against. */
import type { KnownProviders } from '../config/check/value-checks.ts'
import type { Environment } from '../config/load/environment.ts'
import { discoverProviders } from '../providers/discover.ts'
import { PRESETS } from '../providers/presets.ts'
import { SANDBOX_MODELS } from '../providers/sandbox.ts'

export function knownVendors(environment: Environment): KnownProviders {
  return {
    presets: Object.keys(PRESETS),
    presetVariables: Object.fromEntries(Object.entries(PRESETS).map(([name, { key_env }]) => [name, key_env])),
    discovered: Object.keys(discoverProviders(environment)),
    sandbox: SANDBOX_MODELS,
  }
}
