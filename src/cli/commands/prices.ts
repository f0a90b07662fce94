/** `gatehouse prices diff`: compares the prices of the configuration with public data, and changes nothing. */
import { priceList, startOf } from '../../config/schema/price-schema.ts'
import type { ModelConfig } from '../../config/schema/schema.ts'
import type { Arguments } from '../arguments.ts'
import { actionsOf } from '../command.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { providersOf, readConfigFile, readOnly } from './models-import.ts'
import { MODELS_DEV, readModelsDev } from './models-import-data.ts'
import { type Plan, planImport, type Value } from './models-import-plan.ts'
import { pairVendors, readProviderRequest } from './models-import-vendors.ts'

const HELP = `Usage: gatehouse prices diff [--from <file|url>] [--provider <id>[=<vendor>]]... [--only <pattern>]...
                             [--config <file>] [--json]

Shows where the prices of the configuration differ from models.dev, or from LiteLLM's price map. Changes nothing.

Options:
  --from <file|url>           source of the data (default: ${MODELS_DEV})
  --provider <id>[=<vendor>]  only this provider, and its name in the data; may be repeated
  --only <pattern>            only models whose id or name matches; "*" matches any text; may be repeated
  --config <file>             configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                      print one line of JSON

Examples:
  gatehouse prices diff
  gatehouse prices diff --from model_prices_and_context_window.json --only 'openai/*'
  gatehouse prices diff --json | jq '.differences'
`

type Difference = {
  model: string
  /** As in the configuration: `input`, `tiers`. */
  price: string
  /** Null: none. */
  configured: Value | null
  public: Value | null
}

const actions = actionsOf('prices', HELP, {
  diff: { flags: { from: 'text', provider: 'text', only: 'text', config: 'text' }, run: diff },
})

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  actions(args.length === 0 ? ['--help'] : args, terminal)

async function diff(given: Arguments, terminal: Terminal) {
  const only = readOnly(given, 'prices diff')
  const { config, name: file } = readConfigFile(given, terminal)
  const data = await readModelsDev(given.text('from') ?? MODELS_DEV, terminal)
  const wishes = given.texts('provider').map(readProviderRequest)
  const { paired: pairings, unpaired } = pairVendors({ providers: providersOf(config, terminal), wishes, data })
  const models = withPricesOf(config.models, Date.now() / 1000)
  const plan = planImport({ models, pairings, unpaired, data, only, overwrite: true, existing: true })
  const differences = differencesOf(plan)
  const { source, as_of } = data
  const compared = plan.models.length
  const rows = differences.map(({ model, price, configured, public: known }) => [
    model,
    price,
    shown(configured),
    shown(known),
  ])
  const shownRows = rows.length === 0 ? '' : `${table([['model', 'price', file, data.name], ...rows])}\n`
  const count = differences.length === 0 ? 'no price differs' : `${differences.length} differ`
  const models_ = compared === 1 ? '1 model' : `${compared} models`
  return {
    data: { source, as_of, compared, differences, unknown: plan.unknown, skipped: plan.skipped },
    text: () =>
      `${shownRows}${models_} compared with ${source} of ${as_of}; ${count}, ${plan.unknown.length} unknown there.\n`,
  }
}

/** Each model with the one of its prices that is in force. `now`: unix seconds. */
const withPricesOf = (models: Record<string, ModelConfig>, now: number): Record<string, ModelConfig> =>
  Object.fromEntries(
    Object.entries(models).map(([id, model]) => {
      if (!Array.isArray(model.prices)) return [id, model]
      const { prices: _, ...rest } = model
      const prices = priceList(model.prices).findLast((one) => (startOf(one) ?? Number.POSITIVE_INFINITY) <= now)
      return [id, prices ? { ...rest, prices } : rest]
    }),
  )

const NO_FIGURES: readonly string[] = ['source', 'as_of']

const differencesOf = ({ models }: Plan): Difference[] =>
  models.flatMap(({ id, settings }) =>
    settings.flatMap(({ path: [section, price = ''], from, to }): Difference[] =>
      section === 'prices' && !NO_FIGURES.includes(price) && !(price === 'currency' && (from ?? 'USD') === to)
        ? [{ model: id, price, configured: from ?? null, public: to ?? null }]
        : [],
    ),
  )

const shown = (value: Value | null): string =>
  value === null ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value)
