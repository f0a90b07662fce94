/** Creates a provider of a test with the real transport, a manual clock, and a log that can be read. */
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import type { ProviderConfig } from '../../src/config/schema/schema.ts'
import { createLog } from '../../src/kit/log.ts'
import type { Media } from '../../src/providers/media.ts'
import { createTransport } from '../../src/providers/upstream/transport.ts'
import { manualClock } from './clock.ts'

type More = { environment?: Record<string, string>; media?: Media | undefined }

export function providerParts(config: ProviderConfig, { environment = {}, media }: More = {}) {
  const clock = manualClock()
  const lines: string[] = []
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => lines.push(text) })
  return {
    id: 'acme',
    config,
    timeouts: DEFAULT_TIMEOUTS,
    transport: createTransport({ clock, log }),
    clock,
    log,
    environment,
    manual: async () => [],
    ...(media ? { media } : {}),
    logged() {
      log.flush()
      return lines.join('')
    },
  }
}
