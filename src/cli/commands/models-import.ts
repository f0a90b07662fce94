/** `gatehouse models import`: adds data of models.dev to the configuration, after showing the changes. */
import { relative, resolve } from 'node:path'
import { ConfigError } from '../../config/check/problem.ts'
import { patternProblem } from '../../config/check/value-checks.ts'
import type { Config } from '../../config/config.ts'
import { type Change, editYaml } from '../../config/edit/edit-yaml.ts'
import { readEnvironment } from '../../config/load/environment.ts'
import { DEFAULT_FILE, loadConfig, readUtf8File } from '../../config/load/load.ts'
import type { ProviderConfig } from '../../config/schema/schema.ts'
import { knownVendors } from '../../gateway/known-vendors.ts'
import { discoverProviders } from '../../providers/discover.ts'
import { type Arguments, configFlags, UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'
import { MODELS_DEV, readModelsDev } from './models-import-data.ts'
import { replaceFile } from './models-import-file.ts'
import { type Plan, planImport, treeOf } from './models-import-plan.ts'
import { countsOf, countsText, planText } from './models-import-text.ts'
import { pairVendors, readProviderRequest } from './models-import-vendors.ts'

const COMMAND = 'models import'

const HELP = `Usage: gatehouse models import [--from <file|url>] [--provider <id>[=<vendor>]]... [--only <pattern>]...
                               [--existing] [--overwrite] [--write] [--config <file>] [--json]

Adds prices, limits, missing capabilities, release dates and deprecations of models.dev, or of LiteLLM's price map, to the
configuration. Your own settings stay; prices from an earlier import are updated. Without --write it only shows them.

Options:
  --from <file|url>           source of the data (default: ${MODELS_DEV})
  --provider <id>[=<vendor>]  only this provider, and its name in the data; may be repeated
  --only <pattern>            only models whose id or name matches; "*" matches any text; may be repeated
  --existing                  only models that are in the file; add none
  --overwrite                 also replace your own settings
  --write                     write the file; create it if there is none
  --config <file>             configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                      print one line of JSON

Examples:
  gatehouse models import --provider openai --only 'gpt-5*'
  gatehouse models import --existing --write
  gatehouse models import --from api.json --provider acme=mistral --write
  gatehouse models import --from model_prices_and_context_window.json --existing
`

/** The start of a new file. It turns discovery on, which would otherwise be off with a file. */
const NEW_FILE = `# Created by \`gatehouse models import\`. All settings: docs/manual/reference/settings.md
discover: true # as without a file: find providers by environment keys, and model servers on this machine
`

const TEXTS = { from: 'text', provider: 'text', only: 'text', config: 'text' } as const
const SWITCHES = { existing: 'switch', overwrite: 'switch', write: 'switch' } as const

export const run = plainCommand(COMMAND, HELP, { flags: { ...TEXTS, ...SWITCHES }, run: importModels })

async function importModels(given: Arguments, terminal: Terminal) {
  const only = readOnly(given, COMMAND)
  const file = readConfigFile(given, terminal)
  const data = await readModelsDev(given.text('from') ?? MODELS_DEV, terminal)
  const providers = providersOf(file.config, terminal)
  const wishes = given.texts('provider').map(readProviderRequest)
  const { paired: pairings, unpaired } = pairVendors({ providers, wishes, data })
  const plan = planImport({
    models: file.config.models,
    pairings,
    unpaired,
    data,
    only,
    overwrite: given.has('overwrite'),
    existing: given.has('existing'),
  })
  const text = applyPlan(file, plan, providers)
  const isChanged = text !== file.text
  const isWritten = isChanged && given.has('write')
  if (isWritten) write(file, text)
  const { source, as_of } = data
  const creates = file.before === undefined ? 'creates' : 'changes'
  const end = isWritten
    ? `${file.name} was written.`
    : isChanged
      ? `Nothing was written; --write ${creates} ${file.name}.`
      : 'There is nothing to write.'
  return {
    data: { source, as_of, file: file.path, written: isWritten, counts: countsOf(plan), ...plan },
    text: () =>
      `${source} of ${as_of}, for ${file.name}\n\n${planText(plan, data.name, terminal)}\n${countsText(plan)}${end}\n`,
  }
}

/** The patterns of `--only`. Throws UsageError. */
export function readOnly(given: Arguments, command: string): string[] {
  const only = given.texts('only')
  const trouble = only.map(patternProblem).find(Boolean)
  if (trouble) throw new UsageError(command, `--only: ${trouble}`)
  return only
}

type ConfigFile = {
  /** The name in messages. */
  name: string
  path: string
  /** Its text; undefined if there is no file. */
  before: string | undefined
  /** The text to edit: `before`, or the start of a new file. */
  text: string
  config: Config
  load(text: string): Config
}

/** Throws ConfigError: an invalid configuration must be fixed first. */
export function readConfigFile(given: Arguments, { environment, cwd }: Terminal): ConfigFile {
  const flags = configFlags(given)
  const path = resolve(cwd, readEnvironment({ environment, cwd, flags }).config ?? DEFAULT_FILE)
  const vendors = knownVendors(environment)
  let before: string | undefined
  // The loader reads the file, so that it reports read errors.
  const readFile = (path: string) => {
    before = readUtf8File(path)
    return before ?? NEW_FILE
  }
  const config = loadConfig({ environment, cwd, flags, vendors, readFile })
  const inside = relative(cwd, path)
  return {
    name: inside.startsWith('..') ? path : inside,
    path,
    before,
    text: before ?? NEW_FILE,
    config,
    load: (text) => loadConfig({ environment, cwd, flags, vendors, readFile: () => text }),
  }
}

export const providersOf = (config: Config, { environment }: Terminal): Record<string, ProviderConfig> => ({
  ...(config.discover ? discoverProviders(environment) : {}),
  ...config.providers,
})

/** The file's text after the plan, validated by the loader; changes that are not possible are added to `plan.skipped`. */
function applyPlan(
  { text, before, name, load }: ConfigFile,
  plan: Plan,
  providers: Record<string, ProviderConfig>,
): string {
  const changed = plan.models.filter(({ change }) => change !== 'none')
  const changes: Change[] = changed.map((model) => ({ path: ['models', model.id], tree: treeOf(model) }))
  if (before === undefined) {
    // Listed explicitly, so that the file is also valid without the key in the environment.
    for (const id of new Set(changed.map(({ provider }) => provider))) {
      const { preset } = providers[id] ?? {}
      if (preset !== undefined) changes.unshift({ path: ['providers', id], tree: { preset, discover: true } })
    }
  }
  const result = editYaml(text, changes)
  for (const { change, why } of result.refused) {
    const id = change.path.at(-1) ?? ''
    plan.models = plan.models.filter((model) => model.id !== id)
    plan.skipped.push({ id, why })
  }
  try {
    load(result.text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new Error(`With this import ${name} would be invalid, so nothing was changed:\n${error.message}`)
  }
  return result.text
}

function write({ name, path, before }: ConfigFile, text: string): void {
  try {
    replaceFile({ path, before, text })
  } catch (error) {
    const code = (error as { code?: string }).code
    const why = { EACCES: 'permission denied', EPERM: 'permission denied', EROFS: 'it is read-only' }[code ?? '']
    throw new Error(`${name} was not written: ${why ?? (error as Error).message}`)
  }
}
