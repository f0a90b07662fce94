/** The part of a provider that serves the calls of a family. */
import type { Provider, Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'

/** `lack`: what a provider without it is said to do, such as `serves no speech`. Throws no_available_channel. */
export function partOf<Name extends keyof Provider>(
  { provider }: Target,
  name: Name,
  lack: string,
): NonNullable<Provider[Name]> {
  const part = provider[name]
  if (part) return part
  throw new GatewayError('no_available_channel', `The provider "${provider.id}" ${lack}.`)
}
