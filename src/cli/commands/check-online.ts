/** `gatehouse check --online`: asks every provider for its list of models, which costs nothing, and explains a failure. */
import type { Config } from '../../config/config.ts'
import type { Environment } from '../../config/load/environment.ts'
import type { Clock } from '../../kit/clock.ts'
import { askedOf, askProvider, type CreateProvider, type ProviderReport } from '../../providers/ask-provider.ts'
import { discoverProviders } from '../../providers/discover.ts'
import { headedTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'

type OnlineParts = { config: Config; environment: Environment; create: CreateProvider; clock: Clock }

/** Asks all providers at once, with each of their keys: those of the file, and with discovery those of the environment's keys. */
export function askProviders(parts: OnlineParts): Promise<ProviderReport[]> {
  const { config, environment } = parts
  const found = config.discover ? discoverProviders(environment) : {}
  const all = Object.entries({ ...found, ...config.providers }).filter(([, { kind }]) => kind !== 'sandbox')
  const asked = all.flatMap(([id, one]) => askedOf(id, one))
  return Promise.all(asked.map((one) => askProvider(one, parts)))
}

/** One line for each provider, or for each of its keys. */
export function onlineTable(reports: ProviderReport[], terminal: Terminal): string {
  if (reports.length === 0) return 'There is no provider to ask.\n'
  const header = ['PROVIDER', 'KIND', 'RESULT', 'MODELS', 'TIME', '']
  const rows = reports.map(({ provider, key, kind, result, models, milliseconds, message }) => [
    key === null ? provider : `${provider}#${key}`,
    kind,
    result,
    models === null ? '-' : String(models),
    milliseconds === null ? '-' : `${milliseconds} ms`,
    message,
  ])
  return headedTable(header, rows, terminal)
}
