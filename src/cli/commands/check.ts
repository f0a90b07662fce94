/** `gatehouse check`: validates the configuration and reports its problems; starts nothing. */
import { relative } from 'node:path'
import { ConfigError, type ConfigProblem, problemText, unplaced } from '../../config/check/problem.ts'
import type { Config } from '../../config/config.ts'
import { ENVIRONMENT_VARIABLES } from '../../config/load/environment.ts'
import { readTextFile } from '../../config/load/load.ts'
import { configJsonSchemaText } from '../../config/schema/json-schema.ts'
import { sandboxText } from '../../config/schema/mcp-schema.ts'
import { checkProviders, providerFactory } from '../../gateway/check-providers.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import { landlockVersion } from '../../kit/confinement.ts'
import { nearest } from '../../kit/nearest.ts'
import { type Arguments, readCommand } from '../arguments.ts'
import { configOf } from '../config-of.ts'
import { json, type Terminal } from '../terminal.ts'
import { askProviders, onlineTable } from './check-online.ts'

const HELP = `Usage: gatehouse check [--config <file>] [--online] [--schema] [--json]

Validates the configuration and the GATEHOUSE_* variables, and starts nothing. Exits with 1 if they are not valid, and
prints every problem with its file, line and column. Warns of likely mistakes, such as a provider without a key.

Options:
  --config <file>  the file to check (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --online         ask every provider for its list of models with each of its keys, free of charge, and explain each
                   failure; exits with 1 if one failed. Takes 10 seconds at most
  --schema         print the JSON Schema of the file, for completion in editors
  --json           print one line of JSON

Examples:
  gatehouse check
  gatehouse check --online
  gatehouse check --config /etc/gatehouse/gatehouse.yaml
  gatehouse check --schema > gatehouse.schema.json
`

export async function run(args: string[], terminal: Terminal, clock: Clock = systemClock): Promise<number> {
  const flags = { config: 'text', online: 'switch', schema: 'switch' } as const
  const given = readCommand({ help: HELP, terminal, command: 'check', args, flags })
  if (!given) return 0
  if (!given.has('schema')) return checkConfig(given, terminal, clock)
  terminal.out(configJsonSchemaText())
  return 0
}

async function checkConfig(given: Arguments, terminal: Terminal, clock: Clock): Promise<number> {
  const { environment, cwd } = terminal
  const asJson = given.has('json')
  try {
    const config = configOf(given, terminal)
    const create = providerFactory(config, environment)
    const { warnings, problems } = checkProviders(config, environment, create)
    const text = config.file === undefined ? '' : readTextFile(config.file)
    warnings.push(...mistyped(Object.keys(environment).filter((name) => !text?.includes(name))))
    if (problems.length > 0)
      throw new ConfigError(problems.map((message) => unplaced(shownPath(config.file ?? '', cwd), message)))
    const online = given.has('online') ? await askProviders({ config, environment, create, clock }) : undefined
    if (asJson) {
      const found = online === undefined ? {} : { online }
      terminal.out(json({ valid: true, file: config.file ?? null, problems: [], warnings, ...found }))
    } else {
      for (const warning of warnings) terminal.err(`warning: ${warning}\n`)
      terminal.out(`${summary(config, cwd)}\n${programsOf(config)}`)
      if (online) terminal.out(`\n${onlineTable(online, terminal)}`)
    }
    return online?.some(({ result }) => result === 'failed') ? 1 : 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const problems = error.problems.map(wireProblem)
    if (asJson) terminal.out(json({ valid: false, problems }))
    else terminal.err(`${error.problems.map(problemText).join('\n')}\n\n${countOf(problems.length)}\n`)
    return 1
  }
}

const PREFIX = /^GATEHOUSE_/

/** Of variables without effect. Short names are never far from each other. */
function mistyped(names: string[]): string[] {
  const known = Object.keys(ENVIRONMENT_VARIABLES).map((name) => name.replace(PREFIX, ''))
  return names.flatMap((name) => {
    const own = name.replace(PREFIX, '')
    const meant = own === name || known.includes(own) ? undefined : nearest(own, known, own.length > 5 ? 2 : 1)
    return meant === undefined ? [] : [`${name} has no effect; did you mean GATEHOUSE_${meant}?`]
  })
}

function summary({ file, providers, models }: Config, cwd: string): string {
  if (file === undefined) return 'There is no configuration file; all settings have their defaults.'
  const held = `${quantity(Object.keys(providers).length, 'provider')}, ${quantity(Object.keys(models).length, 'model')}`
  return `${shownPath(file, cwd)} is valid: ${held}.`
}

/** What runs on the host, and how it is confined. */
function programsOf({ mcp }: Config): string {
  const lines = Object.entries(mcp.servers).map(([name, server]) => ({
    name,
    text: sandboxText(server, landlockVersion() > 0),
  }))
  return lines
    .flatMap(({ name, text }) => (text ? [`mcp.servers.${name} is a program; sandbox: ${text}\n`] : []))
    .join('')
}

function shownPath(file: string, cwd: string): string {
  const name = relative(cwd, file)
  return name.startsWith('..') ? file : name
}

const wireProblem = (problem: ConfigProblem) => ({
  ...problem,
  line: problem.line ?? null,
  column: problem.column ?? null,
})

const countOf = (count: number): string => `The configuration is not valid: ${quantity(count, 'problem')}.`

const quantity = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
