/** Finds what the benchmark compares with, or installs it where it may. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { plainEnvironment } from './processes.ts'

export type Tools = {
  nginx: string | undefined
  wrk: string | undefined
  portkey: string | undefined
  node: string | undefined
  /** What is missing and what that leaves out, in plain words. */
  missing: string[]
}

const BENCH = import.meta.dir
const PORTKEY = join(BENCH, 'node_modules/@portkey-ai/gateway/build/start-server.js')

export async function findTools(progress: (text: string) => void): Promise<Tools> {
  const find = (name: string) => Bun.which(name, { PATH: plainEnvironment().PATH ?? '' }) ?? undefined
  const absent = ['nginx', 'wrk'].filter((name) => !find(name))
  if (absent.length > 0) await installFromDebian(absent, progress)
  if (!existsSync(PORTKEY)) await installPeers(progress)
  const tools = { nginx: find('nginx'), wrk: find('wrk'), node: find('node') }
  const portkey = existsSync(PORTKEY) && tools.node ? PORTKEY : undefined
  const missing: string[] = []
  if (!tools.nginx) missing.push('nginx is not installed (Debian: apt-get install nginx): its column is left out.')
  if (!tools.wrk) missing.push('wrk is not installed (Debian: apt-get install wrk): rows that need it are left out.')
  if (!portkey) missing.push("Portkey's gateway is not installed (npm ci in bench/): its column is left out.")
  return { ...tools, portkey, missing }
}

async function installFromDebian(names: string[], progress: (text: string) => void): Promise<void> {
  if (!Bun.which('apt-get')) return progress(`${names.join(' and ')} not found, and no apt-get to install from.`)
  if (process.getuid?.() !== 0) {
    return progress(`${names.join(' and ')} not found; as root this would run: apt-get install ${names.join(' ')}`)
  }
  progress(`installing ${names.join(' and ')} with apt-get`)
  await run(['apt-get', 'update', '-qq'])
  // Run level 1 keeps Debian from starting nginx as a service: the benchmark runs one of its own.
  await run(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...names], {
    DEBIAN_FRONTEND: 'noninteractive',
    RUNLEVEL: '1',
  })
}

async function installPeers(progress: (text: string) => void): Promise<void> {
  progress("installing Portkey's gateway into bench/node_modules (npm ci)")
  await run(['npm', 'ci', '--no-audit', '--no-fund'])
}

/** A failed installation is not an error: what it leaves missing is reported afterwards. */
async function run(command: string[], env: Record<string, string> = {}): Promise<void> {
  const child = Bun.spawn(command, { cwd: BENCH, stdout: 'ignore', stderr: 'ignore', env: { ...process.env, ...env } })
  await child.exited
}

/** The first line that a program says about its version. */
export function versionOf(command: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(command, { env: plainEnvironment() })
  return /\d+\.\d+(\.\d+)*/.exec(`${stdout}${stderr}`)?.[0] ?? 'unknown'
}
