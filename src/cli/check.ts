/** `gatehouse check`: validates the configuration and reports its problems; starts nothing. */
import { relative } from 'node:path'
import type { Config } from '../config/config.ts'
import { configJsonSchemaText } from '../config/json-schema.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError, type ConfigProblem, problemText } from '../config/problem.ts'
import { keyWarning } from '../providers/settings.ts'
import { readArguments } from './arguments.ts'
import { json, type Terminal } from './terminal.ts'
import { knownVendors } from './vendors.ts'

const HELP = `Usage: gatehouse check [--config <file>] [--schema] [--json]

Validates the configuration and the GATEHOUSE_* variables, and starts nothing.
Exits with 0 if they are valid; otherwise with 1, and prints every problem with its file, line and column.

Options:
  --config <file>  the file to check (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --schema         print the JSON Schema of the file, for completion in editors
  --json           print the result as one line of JSON

Examples:
  gatehouse check
  gatehouse check --config /etc/gatehouse/gatehouse.yaml
  gatehouse check --schema > gatehouse.schema.json
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const given = readArguments({ command: 'check', args, flags: { config: 'text', schema: 'switch' } })
  if (given.has('help')) terminal.out(HELP)
  else if (given.has('schema')) terminal.out(configJsonSchemaText())
  else return checkConfig({ terminal, file: given.text('config'), asJson: given.has('json') })
  return 0
}

function checkConfig({ terminal, file, asJson }: { terminal: Terminal; file: string | undefined; asJson: boolean }) {
  const { environment, cwd } = terminal
  const flags = file === undefined ? {} : { config: file }
  try {
    const config = loadConfig({ environment, cwd, flags, vendors: knownVendors(environment) })
    const warnings = warningsOf(config, environment)
    if (asJson) terminal.out(json({ valid: true, file: config.file ?? null, problems: [], warnings }))
    else {
      for (const warning of warnings) terminal.err(`warning: ${warning}\n`)
      terminal.out(`${summary(config, cwd)}\n`)
    }
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const problems = error.problems.map(wireProblem)
    if (asJson) terminal.out(json({ valid: false, problems }))
    else terminal.err(`${error.problems.map(problemText).join('\n')}\n\n${countOf(problems.length)}\n`)
    return 1
  }
}

/** What is valid, and still likely to be a mistake. */
const warningsOf = ({ providers }: Config, environment: Terminal['environment']): string[] =>
  Object.entries(providers).flatMap(([id, provider]) => keyWarning(id, provider, environment) ?? [])

function summary({ file, providers, models }: Config, cwd: string): string {
  if (file === undefined) return 'There is no configuration file; all settings have their defaults.'
  const name = relative(cwd, file)
  const held = `${quantity(Object.keys(providers).length, 'provider')}, ${quantity(Object.keys(models).length, 'model')}`
  return `${name.startsWith('..') ? file : name} is valid: ${held}.`
}

const wireProblem = (problem: ConfigProblem) => ({
  ...problem,
  line: problem.line ?? null,
  column: problem.column ?? null,
})

const countOf = (count: number): string => `The configuration is not valid: ${quantity(count, 'problem')}.`

const quantity = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
