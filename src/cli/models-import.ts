/** `gatehouse models import`: fills the configuration with what models.dev says of its models, and shows it first. */
import { relative, resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { type Change, editYaml } from '../config/edit-yaml.ts'
import { readEnvironment } from '../config/environment.ts'
import { DEFAULT_FILE, loadConfig, readTextFile } from '../config/load.ts'
import { patternProblem } from '../config/semantic-checks.ts'
import { ConfigError } from '../config/problem.ts'
import type { ProviderConfig } from '../config/schema.ts'
import { discoverProviders } from '../providers/discover.ts'
import { type Arguments, readArguments, UsageError } from './arguments.ts'
import { MODELS_DEV, type ModelsDev, readModelsDev } from './models-import-data.ts'
import { replaceFile } from './models-import-file.ts'
import { type Plan, planImport, treeOf } from './models-import-plan.ts'
import { countsOf, countsText, planText } from './models-import-text.ts'
import { pairVendors, readWish } from './models-import-vendors.ts'
import { json, type Terminal } from './terminal.ts'
import { knownVendors } from './vendors.ts'

const COMMAND = 'models import'

const HELP = `Usage: gatehouse models import [--from <file|url>] [--provider <id>[=<vendor>]]... [--only <pattern>]...
                               [--existing] [--overwrite] [--write] [--config <file>] [--json]

Fills the configuration with the public data of models.dev: prices, context and output limits, what a model cannot
do, its release, whether it is deprecated. Shows what would change and writes nothing without --write. What you wrote
is kept; prices that an import wrote before are brought up to date.

Options:
  --from <file|url>           where the data is (default: ${MODELS_DEV})
  --provider <id>[=<vendor>]  this provider only, and which vendor of models.dev it is; may be repeated
  --only <pattern>            models whose id or own name fits, "*" stands for anything; may be repeated
  --existing                  only models that are in the file; adds none
  --overwrite                 also replace settings that you wrote
  --write                     write the file; without one, make one
  --config <file>             the configuration file (default: GATEHOUSE_CONFIG, else ./gatehouse.yaml)
  --json                      print the result as one line of JSON

Examples:
  gatehouse models import --provider openai --only 'gpt-5*'
  gatehouse models import --existing --write
  gatehouse models import --from api.json --provider acme=mistral --write
`

/** What a file begins with that an import makes: with one, the search for providers would be off. */
const NEW_FILE = `# Made by \`gatehouse models import\`. What else may stand here: docs/manual/how-to/configuration.md
discover: true # as without a file: find providers by keys in the environment, and model servers on this machine
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const given = readArguments({
    command: COMMAND,
    args,
    flags: {
      from: 'text',
      provider: 'text',
      only: 'text',
      config: 'text',
      existing: 'switch',
      overwrite: 'switch',
      write: 'switch',
    },
  })
  if (given.has('help')) {
    terminal.out(HELP)
    return 0
  }
  const only = given.texts('only')
  for (const pattern of only) {
    const trouble = patternProblem(pattern)
    if (trouble) throw new UsageError(COMMAND, `--only: ${trouble}`)
  }
  const file = readConfigFile(given, terminal)
  const data = await readModelsDev(given.text('from') ?? MODELS_DEV, terminal)
  const providers = providersOf(file.config, terminal)
  const wishes = given.texts('provider').map(readWish)
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
  const text = edited(file, plan, providers)
  const isChanged = text !== file.text
  const isWritten = isChanged && given.has('write')
  if (isWritten) write(file, text)
  show({ plan, data, file, terminal, given, isChanged, isWritten })
  return 0
}

type ConfigFile = {
  /** As messages name it. */
  name: string
  path: string
  /** What it held; undefined where there is none. */
  before: string | undefined
  /** What is edited: `before`, or the beginning of a new file. */
  text: string
  config: Config
  load(text: string): Config
}

/** Throws ConfigError: a configuration with a mistake in it is mended first. */
function readConfigFile(given: Arguments, { environment, cwd }: Terminal): ConfigFile {
  const named = given.text('config')
  const flags = named === undefined ? {} : { config: named }
  const path = resolve(cwd, readEnvironment({ environment, cwd, flags }).config ?? DEFAULT_FILE)
  const vendors = knownVendors(environment)
  let before: string | undefined
  // The loader reads the file, so that what cannot be read is told in its words.
  const readFile = (asked: string) => {
    before = readTextFile(asked)
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

const providersOf = (config: Config, { environment }: Terminal): Record<string, ProviderConfig> => ({
  ...(config.discover ? discoverProviders(environment) : {}),
  ...config.providers,
})

/** The file's text with the plan carried out, which the loader has taken; what stands in the way is told in the plan. */
function edited(
  { text, before, name, load }: ConfigFile,
  plan: Plan,
  providers: Record<string, ProviderConfig>,
): string {
  const changed = plan.models.filter(({ change }) => change !== 'none')
  const changes: Change[] = changed.map((model) => ({ path: ['models', model.id], tree: treeOf(model) }))
  if (before === undefined) {
    // Written down, so that the file holds where the key is not in the environment.
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
    throw new Error(`With this import ${name} would not be valid, so nothing was changed:\n${error.message}`)
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

type Shown = {
  plan: Plan
  data: ModelsDev
  file: ConfigFile
  terminal: Terminal
  given: Arguments
  isChanged: boolean
  isWritten: boolean
}

function show({ plan, data, file, terminal, given, isChanged, isWritten }: Shown): void {
  const { source, as_of } = data
  if (given.has('json')) {
    terminal.out(json({ source, as_of, file: file.path, written: isWritten, counts: countsOf(plan), ...plan }))
    return
  }
  const end = isWritten
    ? `${file.name} was written.`
    : isChanged
      ? `Nothing was written; with --write ${file.name} is ${file.before === undefined ? 'made' : 'changed'}.`
      : 'There is nothing to write.'
  terminal.out(`${source} of ${as_of}, for ${file.name}\n\n${planText(plan, terminal)}\n${countsText(plan)}${end}\n`)
}
