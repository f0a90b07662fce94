/** Names what is wrong with a provider. */
import type { AdminProvider } from './types.ts'

export type KnownProvider = Pick<AdminProvider, 'state' | 'active_health' | 'is_list_failing' | 'keys'>

/** What is wrong with a provider, or what an operator did to it; undefined: nothing that is known. */
export function problemOf({ state, active_health, is_list_failing, keys }: KnownProvider): string | undefined {
  if (state !== null && state !== 'available') return state
  if (active_health === 'unhealthy') return 'unhealthy'
  const broken = keys.filter((key) => key.state !== null && key.state !== 'available')
  if (broken.length > 0) return `${broken.length} of ${keys.length} keys: ${broken[0]?.state}`
  return is_list_failing ? 'its list of models cannot be read' : undefined
}
