/** Starts processes on a chosen core, reads what they cost from /proc, and ends every one of them. */
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** The gateway under test has one core to itself; whatever makes or answers its load has the other. */
export const GATEWAY_CORE = 0
export const LOAD_CORE = 1
/** Linux counts processor time for /proc in hundredths of a second on every platform that Bun runs on. */
const TICKS_A_SECOND = 100

export type Group = { pid: number; exited: Promise<number>; log: string }
export type SpawnOrder = {
  command: string[]
  /** A list, as taskset takes it, for several. */
  core: number | string
  /** Where its output goes. */
  log: string
  env?: Record<string, string>
  cwd?: string
}

const groups = new Set<number>()

/** Why this machine cannot run the benchmark; undefined when it can. */
export function whyNot(): string | undefined {
  if (process.platform !== 'linux') return 'it reads /proc and pins with taskset, so it needs Linux'
  if (!Bun.which('taskset')) return 'it needs taskset (Debian: util-linux)'
  if (availableParallelism() < 2) return 'it needs two cores: one for the gateway, one for the load'
  return undefined
}

/** Only what a program needs to run: no key of the person who measures gets into a gateway. */
export function plainEnvironment(extra: Record<string, string> = {}): Record<string, string> {
  const { PATH = '/usr/bin:/bin', HOME = '/' } = process.env
  return { PATH: `${PATH}:/usr/sbin:/sbin`, HOME, ...extra }
}

/** Starts a command as the leader of a process group of its own, so that its children can be counted and ended. */
export function startGroup({ command, core, log, env, cwd }: SpawnOrder): Group {
  const output = openSync(log, 'a')
  const child = Bun.spawn(['taskset', '-c', String(core), ...command], {
    env: plainEnvironment(env),
    stdin: 'ignore',
    stdout: output,
    stderr: output,
    detached: true,
    ...(cwd ? { cwd } : {}),
  })
  closeSync(output)
  groups.add(child.pid)
  return { pid: child.pid, exited: child.exited, log }
}

/** Runs a command on the load's core to its end; `onLine` sees each line of its output as it comes. */
export async function runOnLoadCore(
  command: string[],
  env: Record<string, string>,
  onLine: (line: string) => void = () => {},
): Promise<string> {
  const child = Bun.spawn(['taskset', '-c', String(LOAD_CORE), ...command], {
    env: plainEnvironment(env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
    detached: true,
  })
  groups.add(child.pid)
  let text = ''
  let line = ''
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += piece
    const lines = (line + piece).split('\n')
    line = lines.pop() ?? ''
    for (const whole of lines) onLine(whole)
  }
  const code = await child.exited
  groups.delete(child.pid)
  if (code !== 0) throw new Error(`${command[0]} ended with code ${code}: ${text.slice(-500)}`)
  return text
}

/** Asks a group to stop, and ends it when it has not within five seconds. */
export async function endGroup(group: Group): Promise<void> {
  signalGroup(group.pid, 'SIGTERM')
  for (let waited = 0; waited < 5000 && pidsOf(group.pid).length > 0; waited += 50) await Bun.sleep(50)
  signalGroup(group.pid, 'SIGKILL')
  await group.exited
  groups.delete(group.pid)
}

/** Ends everything at once; for the end of the benchmark, however it comes. */
export function endEverything(): void {
  for (const pid of groups) signalGroup(pid, 'SIGKILL')
  groups.clear()
}

function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // The group has ended already.
  }
}

function pidsOf(group: number): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && statOf(name)?.[2] === String(group))
}

/** The fields of /proc/PID/stat from the third on: state, parent, group, ... ; undefined when the process has ended. */
function statOf(pid: string): string[] | undefined {
  const text = readProc(`/proc/${pid}/stat`)
  // The second field is a name in parentheses, which may contain anything.
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // Processes come and go between the listing and the reading.
    return undefined
  }
}

/** Memory that is held in RAM by a group's processes together, in bytes. */
export function residentBytes(group: Group): number {
  const kilobytes = pidsOf(group.pid).map((pid) => {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readProc(`/proc/${pid}/status`) ?? '')
    return Number(line?.[1] ?? 0)
  })
  return kilobytes.reduce((sum, each) => sum + each, 0) * 1024
}

/** Processor time that a group's living processes have used so far, in seconds. */
export function cpuSeconds(group: Pick<Group, 'pid'>): number {
  const ticks = pidsOf(group.pid).map((pid) => {
    const fields = statOf(pid)
    return Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0)
  })
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS_A_SECOND
}

/** Seconds for which a core was busy since the machine started, time taken by a hypervisor included. */
export function coreBusySeconds(core: number): number {
  const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(readProc('/proc/stat') ?? '')?.[1] ?? ''
  const [user = 0, nice = 0, system = 0, , , hard = 0, soft = 0, stolen = 0] = line.split(' ').map(Number)
  return (user + nice + system + hard + soft + stolen) / TICKS_A_SECOND
}
