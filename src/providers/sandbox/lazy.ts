/** The sandbox as it stands in every gateway: its code is loaded with the first call of one of its members. */
import { createRequire } from 'node:module'
import { type FamilyMember, type Provider, SERVED_BY } from '../provider.ts'
import type { SandboxParts } from './sandbox.ts'

const require = createRequire(import.meta.url)

export function createLazySandbox(parts: SandboxParts): Provider {
  let loaded: Provider | undefined
  const load = (): Provider => {
    loaded ??= (require('./sandbox.ts') as typeof import('./sandbox.ts')).createSandbox(parts)
    return loaded
  }
  /** A member whose functions are looked up in the loaded sandbox. */
  const lazy = (name: FamilyMember) =>
    new Proxy({}, { get: (_, property): unknown => Reflect.get(load()[name] ?? {}, property) })
  const served = new Set(Object.values(SERVED_BY))
  // Images are made of what is read of a request's media.
  if (!parts.media) served.delete('images')
  return {
    id: parts.id,
    kind: 'sandbox',
    ...(Object.fromEntries([...served].map((name) => [name, lazy(name)])) as Pick<Provider, FamilyMember>),
    async close() {
      await loaded?.close?.()
    },
  }
}
