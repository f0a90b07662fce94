/** The providers of a configuration, created without a gateway. */
import { declaredProblems } from '../accounts/declared.ts'
import { mcpWarnings } from '../config/check/mcp-checks.ts'
import { ConfigError, unplaced } from '../config/check/problem.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/load/environment.ts'
import { systemClock } from '../kit/clock.ts'
import { createGuardedFetch } from '../kit/guarded-fetch.ts'
import { createLog } from '../kit/log.ts'
import type { CreateProvider } from '../providers/ask-provider.ts'
import { createMedia } from '../providers/media.ts'
import { createProvider } from '../providers/registry.ts'
import { createCheckedFetch } from '../providers/upstream/checked-fetch.ts'
import { createTransport } from '../providers/upstream/transport.ts'
import { keyWarnings, servingProviders, unusedWarnings } from '../providers/warnings.ts'

export function providerFactory({ timeouts, server }: Config, environment: Environment): CreateProvider {
  const clock = systemClock
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  // What is asked may come by the admin API.
  const checked = createCheckedFetch({ allowed: server.metadata_hosts, environment })
  const transport = createTransport({ clock, log, environment, fetch: checked })
  const media = createMedia({ guardedFetch: createGuardedFetch({ clock }) })
  const manual = async () => []
  return (id, config) => createProvider({ id, config, timeouts, environment, transport, clock, log, media, manual })
}

/** The problems with which a gateway would not start, and the warnings that it would log. */
export function checkProviders(config: Config, environment: Environment, create: CreateProvider) {
  const problems = declaredProblems(config)
  const warnings: string[] = []
  const serving = servingProviders(config.models)
  for (const [id, one] of Object.entries(config.providers)) {
    try {
      const provider = create(id, one)
      const found = [...keyWarnings(id, one, environment), ...unusedWarnings(provider, one, serving)]
      warnings.push(...found.map(({ message }) => message))
    } catch (error) {
      problems.push((error as Error).message)
    }
  }
  return { problems, warnings: [...warnings, ...mcpWarnings(config)] }
}

/** Throws ConfigError with what a gateway could not start with. */
export function assertProviders(config: Config, environment: Environment): void {
  const { problems } = checkProviders(config, environment, providerFactory(config, environment))
  if (problems.length === 0) return
  const { file = '' } = config
  throw new ConfigError(problems.map((message) => unplaced(file, message)))
}
