/** `gatehouse models`: prints the catalogue that a gateway would serve, without listening. */
import type { Config } from '../../config/config.ts'
import type { Model } from '../../spec/model.ts'
import { type Arguments, STORE_FLAGS } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { configOf } from '../config-of.ts'
import { withIdleGateway } from '../serve/idle-gateway.ts'
import { headedTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse models [--config <file>] [--data-dir <directory>] [--json]
       gatehouse models import [options]

Lists the models that the gateway would serve. Works whether or not a gateway is running. \`models import\` has its own
--help.

Options:
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data)
  --json                  print the models as one line of JSON

Examples:
  gatehouse models
  gatehouse models import --provider openai
  gatehouse models --json | jq -r '.models[].id'
`

type Row = Model & { targets: string[]; context_tokens?: number }

export async function run(args: string[], terminal: Terminal): Promise<number> {
  if (args[0] === 'import') return (await import('./models-import.ts')).run(args.slice(1), terminal)
  return plainCommand('models', HELP, { flags: STORE_FLAGS, run: list })(args, terminal)
}

async function list(given: Arguments, terminal: Terminal) {
  const config = configOf(given, terminal)
  const models = await withIdleGateway(config, terminal, (gateway) =>
    gateway.summary().models.map((model) => rowOf(config, model)),
  )
  return { data: { models }, text: () => asTable(models, terminal) }
}

function rowOf(config: Config, model: Model): Row {
  const context_tokens = config.models[config.models[model.id]?.alias_of ?? model.id]?.context_tokens
  return {
    ...model,
    targets: targetsOf(config, model.id),
    ...(context_tokens === undefined ? {} : { context_tokens }),
  }
}

/** `provider/model` of each target, in order; a model without targets is its own target, an alias has those of its model. */
function targetsOf(config: Config, id: string): string[] {
  const { alias_of, targets } = config.models[id] ?? {}
  if (alias_of !== undefined) return targetsOf(config, alias_of)
  return targets?.map(({ provider, model }) => `${provider}/${model}`) ?? [id]
}

function asTable(rows: Row[], terminal: Terminal): string {
  if (rows.length === 0) return 'There are no models: no provider is configured or found, and the sandbox is off.\n'
  const head = ['MODEL', 'STATUS', 'FAMILIES', 'CONTEXT', 'TARGETS', 'REPLACED BY']
  const body = rows.map((row) => [
    row.id,
    row.status,
    row.supported_endpoint_types.join(' ') || '-',
    row.context_tokens === undefined ? '-' : String(row.context_tokens),
    row.targets.join(' '),
    row.replaced_by ?? '',
  ])
  return headedTable(head, body, terminal)
}
