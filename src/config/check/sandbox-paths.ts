/** Names the files of the gateway, which programs of MCP servers never reach, and finds settings that would open them. */
import { readdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import type { Config } from '../config.ts'
import type { Environment } from '../load/environment.ts'
import type { Path, YamlText } from '../load/read-yaml.ts'
import { placesOf } from './path-pattern.ts'
import { type ConfigProblem, placeName } from './problem.ts'

type Named = { path: Path; text: string /** What a relative path is relative to. */; base: string; isSink: boolean }

export const SYSTEM_KEYS = ['/etc/ssl/private', '/etc/pki/tls/private']

/** Every setting that names a file or a directory. */
export function namedPaths(value: unknown, data_dir: string): Named[] {
  const named = (pattern: string, base = process.cwd(), isSink = false): Named[] =>
    placesOf(value, pattern).flatMap(({ path, value: text }) =>
      typeof text === 'string' ? [{ path, text, base, isSink }] : [],
    )
  return [
    ...named('outputs.directory'),
    ...named('request_log.sinks.*.file.path', data_dir, true),
    ...named('providers.*.options.credentials'),
  ]
}

/** Files and directories of the gateway. */
export function hiddenPaths(config: Config, environment: Environment): string[] {
  const { data_dir, file, store_url, secret_files = [] } = config
  const named = namedPaths(config, data_dir).map(({ base, text }) => resolve(base, text))
  const database = /^sqlite:(.+)/.exec(store_url)?.[1]
  const files = [file, environment.GATEHOUSE_ENV_FILE, database, database && `${database}-wal`, ...secret_files]
  return [
    resolve(data_dir),
    ...named,
    ...files.flatMap((path) => (path ? [resolve(path)] : [])),
    ...environmentFiles(process.cwd()),
    ...(file === undefined ? [] : environmentFiles(dirname(resolve(file)))),
  ]
}

function environmentFiles(directory: string): string[] {
  try {
    return readdirSync(directory).flatMap((name) => (name.startsWith('.env') ? [join(directory, name)] : []))
  } catch {
    return []
  }
}

export const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`)

/** Without links, as far as it exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realPath(above), basename(path))
  }
}

/** Why the sandbox of a program may not have this path; undefined: it may. */
export function openedProblem(path: string, hidden: readonly string[]): string | undefined {
  const real = realPath(path)
  if (real === '/dev') return `${path} has all devices; name those that it needs`
  const secret = ['/proc', ...SYSTEM_KEYS, ...hidden]
    .map(realPath)
    .find((one) => isWithin(one, real) || isWithin(real, one))
  return secret === undefined ? undefined : `${path} leads to ${secret}, which no program may reach`
}

/** A link or a directory that is made later is found when the program starts. */
export function sandboxProblems(config: Config, environment: Environment, yaml: YamlText): ConfigProblem[] {
  const given = Object.entries(config.mcp.servers).flatMap(([name, { sandbox }]) => {
    if (sandbox === undefined || sandbox === 'off') return []
    return (['read', 'write'] as const).flatMap((member) =>
      (sandbox[member] ?? []).map((text) => ({ text, path: ['mcp', 'servers', name, 'sandbox', member] })),
    )
  })
  if (given.length === 0) return []
  const hidden = hiddenPaths(config, environment)
  return given.flatMap(({ text, path }) => {
    const message = openedProblem(text, hidden)
    return message === undefined
      ? []
      : [{ file: config.file ?? '', ...yaml.placeOf(path, 'value'), path: placeName(path), message }]
  })
}
