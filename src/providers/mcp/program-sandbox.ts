/** How the program of an MCP server is confined: what it reads and writes, by its settings and by what it is started with. */
import { mkdirSync, readdirSync, realpathSync, type Stats, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isWithin, openedProblem, SYSTEM_KEYS } from '../../config/check/sandbox-paths.ts'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { Confinement } from '../../kit/confinement.ts'
import { IS_EXECUTABLE } from '../../kit/resources.ts'

export type ProgramPlaces = {
  /** Where each program has a directory of its own. */
  directory: string
  /** Files and directories of the gateway, which no program may read. */
  hidden: readonly string[]
}

type ProgramParts = {
  name: string
  config: McpServerConfig
  /** What the system gives to any program: PATH, HOME and a few more. */
  inherited: Record<string, string>
  places: ProgramPlaces
}

type Start = { command: string; args: string[]; env: Record<string, string>; cwd?: string }

const DEFAULT_MEMORY_MB = 4096

/** Programs, libraries, and what the C library and TLS read; nothing of `/etc` that may have a secret. */
const SYSTEM = [
  '/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /proc /sys/devices/system /sys/fs/cgroup',
  '/run/systemd/resolve /run/NetworkManager /run/resolvconf /var/lib/ca-certificates',
  ...[
    'alternatives ca-certificates ca-certificates.conf crypto-policies debian_version fonts gai.conf group host.conf',
    'hostname hosts ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime machine-id magic mime.types',
    'nsswitch.conf os-release passwd pki protocols resolv.conf services ssl terminfo timezone',
  ].map((names) => names.replaceAll(/\S+/g, '/etc/$&')),
].flatMap((paths) => paths.split(' '))

/** Throws an Error that names what is missing. */
export function confinementOf({ name, config, inherited, places }: ProgramParts): Confinement {
  const { command = '', args = [], env, sandbox } = config
  const {
    read = [],
    write = [],
    network = 'any',
    unix_sockets = false,
    memory_mb = DEFAULT_MEMORY_MB,
  } = sandbox === 'off' ? {} : (sandbox ?? {})
  const home = join(places.directory, name)
  mkdirSync(join(home, 'tmp'), { recursive: true, mode: 0o700 })
  const own = realpathSync(home)
  const variables: Record<string, string> = { ...inherited, HOME: own, TMPDIR: join(own, 'tmp'), ...env }
  const directories = (variables.PATH ?? '').split(':').filter((path) => path.startsWith('/'))
  const named = command.includes('/') ? [resolve(command)] : directories.map((path) => join(path, command))
  const program = named.find((path) => statsOf(path)?.isFile())
  if (program === undefined) throw new Error(`the program ${command} was not found`)
  const hidden = [...places.hidden, ...SYSTEM_KEYS].flatMap((path) => realPath(path) ?? [])
  const given = (member: 'read' | 'write', paths: string[]) => paths.map((path) => givenPath(member, path, hidden))
  const started = args.map((text) => fromHere(text))
  const implied = [
    ...SYSTEM,
    ...[...directories, dirname(program), dirname(realPath(program) ?? program)].flatMap(installation),
    program,
    ...started.filter((text) => text.startsWith('/')).flatMap(projectOf),
  ]
  return {
    program,
    args: started,
    env: variables,
    cwd: own,
    read: outermost([...implied.flatMap((path) => allowed(path, hidden)), ...given('read', read)]),
    write: [own, ...given('write', write)],
    network: network === 'any',
    unix_sockets,
    memory_bytes: memory_mb * 2 ** 20,
  }
}

/** The process of the launcher, which becomes the program. Its instructions are in one variable, which only its user can read. */
export function launched(confinement: Confinement): Start {
  const [command, ...args] = LAUNCHER
  return { command, args, env: { GATEHOUSE_PROGRAM: JSON.stringify(confinement), ...ONE_THREAD }, cwd: '/' }
}

/** Threads that compile and collect would ask for memory once it is limited. */
const ONE_THREAD = { BUN_JSC_useConcurrentJIT: '0', BUN_JSC_useConcurrentGC: '0', BUN_JSC_numberOfGCMarkers: '1' }

/** The command that makes an executable the launcher; scripts/packaging/executable.ts reads it. */
const LAUNCHER: [string, ...string[]] = IS_EXECUTABLE
  ? [process.execPath, 'mcp-program']
  : [
      process.execPath,
      '--no-env-file',
      '--no-install',
      fileURLToPath(new URL('./program-launcher.ts', import.meta.url)),
    ]

/** Undefined: there is nothing, or nothing that the gateway may see. */
const realPath = (path: string): string | undefined => attempt(() => realpathSync(path))
const statsOf = (path: string): Stats | undefined => attempt(() => statSync(path))

function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Without what lies in another one. */
const outermost = (paths: string[]): string[] =>
  [...new Set(paths)].filter((path, _, all) => !all.some((other) => other !== path && isWithin(path, other)))

/** A file named from where the gateway was started keeps its meaning in the directory of the program. */
const fromHere = (text: string): string =>
  /^\.{1,2}(\/|$)/.test(text) || statsOf(text)?.isFile() ? resolve(text) : text

function givenPath(member: string, path: string, hidden: string[]): string {
  const real = realPath(path)
  if (real === undefined) throw new Error(`sandbox.${member}: ${path} does not exist`)
  const problem = openedProblem(path, hidden)
  if (problem !== undefined) throw new Error(`sandbox.${member}: ${problem}`)
  return real
}

/** Without links: the path, or where it holds what is hidden or the home directory of the gateway, the rest of it. */
function allowed(path: string, hidden: string[]): string[] {
  const real = realPath(path)
  const home = realPath(homedir()) ?? '/'
  if (real === undefined || real === '/' || real === home || hidden.some((one) => isWithin(real, one))) return []
  if (![...hidden, home].some((one) => isWithin(one, real))) return [real]
  return readdirSync(real, { withFileTypes: true })
    .filter((entry) => !entry.isSymbolicLink())
    .flatMap((entry) => allowed(join(real, entry.name), hidden))
}

/** A directory of programs, and the libraries beside it, as Node.js and virtual environments of Python have them. */
const installation = (directory: string): string[] =>
  basename(directory) === 'bin'
    ? ['bin', 'lib', 'lib64', 'libexec', 'pyvenv.cfg'].map((name) => join(directory, '..', name))
    : [directory]

const PROJECT_FILES = ['package.json', 'pyproject.toml', 'node_modules']

/** An argument, and with a script the project that it belongs to. */
function projectOf(argument: string): string[] {
  const paths = [argument, realPath(argument) ?? argument]
  return paths.flatMap((path) => {
    const start = statsOf(path)?.isDirectory() ? path : dirname(path)
    return [path, start, ...nearestProject(start)]
  })
}

function nearestProject(directory: string): string[] {
  if (isWithin(realPath(homedir()) ?? '/', directory)) return []
  const isProject = PROJECT_FILES.some((name) => realPath(join(directory, name)) !== undefined)
  return isProject ? [directory] : nearestProject(dirname(directory))
}
