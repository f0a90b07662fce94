/** Creates providers without a gateway, against a vendor on loopback. */
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import type { ProviderConfig } from '../../src/config/schema/schema.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import type { ChatChunk } from '../../src/protocols/shared/canonical.ts'
import type { ChatCall, Provider } from '../../src/providers/provider.ts'
import { createProvider } from '../../src/providers/registry.ts'
import { createTransport } from '../../src/providers/upstream/transport.ts'

export const NEVER = new AbortController().signal

/** Creates providers `v` of one kind, calls them, and captures their log. */
export function createStandaloneProvider(own: ProviderConfig, call: ChatCall) {
  let text = ''
  const log = createLog({ clock: systemClock, level: 'debug', pretty: false, write: (line) => (text += line) })
  return {
    logged() {
      log.flush()
      return text
    },
    providerAt: (base_url: string, config: ProviderConfig = {}): Provider =>
      createProvider({
        id: 'v',
        config: { ...own, base_url, ...config },
        timeouts: DEFAULT_TIMEOUTS,
        transport: createTransport({ clock: systemClock, log }),
        clock: systemClock,
        log,
        environment: {},
        manual: async () => [],
      }),
    async chunksFrom({ chat }: Provider, signal = NEVER): Promise<ChatChunk[]> {
      const chunks: ChatChunk[] = []
      for await (const batch of chat?.chunks(call, signal) ?? []) chunks.push(...batch)
      return chunks
    },
  }
}
