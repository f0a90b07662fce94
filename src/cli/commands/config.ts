/** `gatehouse config`: the configuration in use with its origins, and changes of the file that are checked before they are written. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, type ConfigProblem, problemText } from '../../config/check/problem.ts'
import type { Setting, SettingChange } from '../../config/edit/effective.ts'
import { type ConfigSource, createConfigSource, type Proposal } from '../../config/edit/source.ts'
import { assertProviders } from '../../gateway/check-providers.ts'
import { knownVendors } from '../../gateway/known-vendors.ts'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { type AdminApi, API_FLAGS, API_OPTIONS_HELP, connectedApi } from '../admin-api.ts'
import type { Arguments } from '../arguments.ts'
import { actionsOf } from '../command.ts'
import type { Outcome } from '../outcome.ts'
import { headedTable } from '../table.ts'
import { json, type Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse config <show | validate | diff | apply> [options]

Works on the configuration file, or on that of a running gateway (--url). A running gateway reloads it by itself.
Values that may be secrets are shown as ***.

Commands:
  show               print the configuration in use: the value of each setting, and where it comes from
      --changed          only what is not a default
  validate <file>    check a file with which the present one is to be replaced
  diff <file>        show what would differ from the present file, by setting
  apply <file>       replace the present file by this one, if it is valid; the old text is kept as <name>.bak

  <file> may be -, for standard input.

Options:
${API_OPTIONS_HELP}
  --config <file>    the present file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json             print one line of JSON

Examples:
  gatehouse config show --changed
  gatehouse config diff new.yaml
  gatehouse config apply new.yaml --config /etc/gatehouse/gatehouse.yaml
`

/** A configuration file, of this machine or of a running gateway. Throws ConfigError with the problems of a text. */
type Source = {
  show(): Setting[] | Promise<Setting[]>
  diff(text: string): Proposal | Promise<Proposal>
  apply(text: string): Promise<Proposal & { file: string; written: boolean; backup: string | null }>
}

type Work = { given: Arguments; source: Source; terminal: Terminal }

const FLAGS = { ...API_FLAGS, config: 'text' } as const

const onSource = (run: (work: Work) => Promise<Outcome | number>) => (given: Arguments, terminal: Terminal) => {
  const api = connectedApi(given, terminal)
  return run({ given, terminal, source: api ? remoteSource(api) : sourceOfFile(given, terminal) })
}

const onFile = (run: (work: Work) => Promise<Outcome | number>) => ({
  flags: FLAGS,
  positionals: ['a file, or - for standard input'],
  run: onSource(run),
})

export const run = actionsOf('config', HELP, {
  show: { flags: { changed: 'switch', ...FLAGS }, run: onSource(show) },
  validate: onFile(validate),
  diff: onFile(diff),
  apply: onFile(apply),
})

export function fileSource(given: Arguments, { environment, cwd }: Terminal): ConfigSource {
  const config = given.text('config')
  return createConfigSource({
    environment,
    cwd,
    ...(config !== undefined && { flags: { config } }),
    vendors: knownVendors(environment),
    check: (config) => assertProviders(config, environment),
  })
}

function sourceOfFile(given: Arguments, terminal: Terminal): Source {
  const source = fileSource(given, terminal)
  return {
    show: () => source.show(),
    diff: source.diff,
    apply: async (text) => ({ file: source.path, ...(await source.apply(text)) }),
  }
}

/** The gateway's answers have the types of its OpenAPI document. */
function remoteSource(api: AdminApi): Source {
  async function post<Result>(action: string, text: string): Promise<Result> {
    return (await api.call(`/config/${action}`, { method: 'POST', body: { text } })).body as Result
  }

  async function assertValid(text: string): Promise<void> {
    const { valid, problems } = await post<{ valid: boolean; problems: Omit<ConfigProblem, 'file'>[] }>(
      'validate',
      text,
    )
    if (!valid) {
      const place = (at: number | null | undefined) => at ?? undefined
      throw new ConfigError(
        problems.map((one) => ({ ...one, file: 'text', line: place(one.line), column: place(one.column) })),
      )
    }
  }

  return {
    show: async () => (await api.all('/config')) as Setting[],
    async diff(text) {
      await assertValid(text)
      return post('diff', text)
    },
    async apply(text) {
      await assertValid(text)
      return post('apply', text)
    },
  }
}

async function show({ given, source, terminal }: Work) {
  const settings = (await source.show()).filter(({ source: { from } }) => !given.has('changed') || from !== 'default')
  const rows = settings.map(({ path, value, source }) => [path, valueText(value), originText(source)])
  return { data: { settings }, text: () => headedTable(['SETTING', 'VALUE', 'FROM'], rows, terminal) }
}

const valueText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function originText(origin: Setting['source']): string {
  if (origin.from === 'file') return `${origin.file}:${origin.line}`
  return origin.from === 'default' || origin.from === 'earlier file' ? origin.from : origin.name
}

/** Standard input may be read only once. */
function textOf({ given, terminal }: Work): string {
  const [name = ''] = given.positionals
  try {
    return readFileSync(name === '-' ? 0 : resolve(terminal.cwd, name), 'utf8')
  } catch (error) {
    throw new Error(`${name} cannot be read: ${whyUnreadable(error)}`)
  }
}

/** Reports the problems of the proposed file under its own name; undefined: they were reported. */
async function proposed<Result>(
  work: Work,
  make: (text: string) => Result | Promise<Result>,
): Promise<Result | undefined> {
  const { given, terminal } = work
  const [name = ''] = given.positionals
  const text = textOf(work)
  try {
    return await make(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const problems = error.problems.map((problem) => ({ ...problem, file: name === '-' ? 'standard input' : name }))
    if (given.has('json')) terminal.out(json({ valid: false, problems }))
    else terminal.err(`${problems.map(problemText).join('\n')}\n\n${name} is not valid; nothing was changed.\n`)
    return undefined
  }
}

async function validate(work: Work) {
  const proposal = await proposed(work, work.source.diff)
  if (!proposal) return 1
  return { data: { valid: true, problems: [] }, text: () => `${work.given.positionals[0]} is valid.\n` }
}

async function diff(work: Work) {
  const proposal = await proposed(work, work.source.diff)
  if (!proposal) return 1
  const text = () => proposalText(proposal) || `${work.given.positionals[0]} changes nothing.\n`
  return { data: { valid: true, ...proposal }, text }
}

async function apply(work: Work) {
  const applied = await proposed(work, work.source.apply)
  if (!applied) return 1
  const { file, written, backup } = applied
  const kept = backup === null ? '' : ` The text before is in ${backup}.`
  const text = () => (written ? `${proposalText(applied)}${file} is written.${kept}\n` : `${file} is as it was.\n`)
  return { data: applied, text }
}

const SIGNS: Record<SettingChange['kind'], string> = { added: '+', removed: '-', changed: '~' }

function proposalText({ changes, needs_restart, emptied }: Proposal): string {
  const lines = changes.map(({ kind, path, before, after }) => {
    const values = kind === 'changed' ? `${valueText(before)} -> ${valueText(after)}` : valueText(before ?? after)
    return `${SIGNS[kind]} ${path}: ${values}`
  })
  if (needs_restart.length > 0) lines.push(`A restart is needed for ${needs_restart.join(', ')}.`)
  if (emptied.length > 0) {
    lines.push(`It has no ${emptied.join(' and no ')} any more: a running gateway applies it only on SIGHUP.`)
  }
  return lines.map((line) => `${line}\n`).join('')
}
