/** The sandbox as it stands in every gateway, asked or not: its code is loaded with the first question. */
import { createRequire } from 'node:module'
import type { Provider } from '../provider.ts'
import type { SandboxParts } from './sandbox.ts'

const require = createRequire(import.meta.url)

type Family = 'chat' | 'video' | 'threeD' | 'embeddings' | 'rerank' | 'images'

export function createLazySandbox(parts: SandboxParts): Provider {
  let awake: Provider | undefined
  const wake = (): Provider => {
    awake ??= (require('./sandbox.ts') as typeof import('./sandbox.ts')).createSandbox(parts)
    return awake
  }
  /** A family's functions, each there when it is looked for. */
  const lazy = <Name extends Family>(name: Name) => {
    const member = (property: string | symbol): unknown => Reflect.get(wake()[name] ?? {}, property)
    return { [name]: new Proxy({}, { get: (_, property) => member(property) }) } as Required<Pick<Provider, Name>>
  }
  return {
    id: parts.id,
    kind: 'sandbox',
    ...lazy('chat'),
    ...lazy('video'),
    ...lazy('threeD'),
    ...lazy('embeddings'),
    ...lazy('rerank'),
    ...(parts.media ? lazy('images') : {}),
    async close() {
      await awake?.close?.()
    },
  }
}
