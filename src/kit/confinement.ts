/**
 * Replaces this process by a program that Linux confines: Landlock limits which files it reaches and whom it may signal,
 * a seccomp filter which sockets it opens, and limits what it may use (docs/decisions/0030).
 */
import { ptr } from 'bun:ffi'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { type FilterInstruction, filterProgram, openFunctions } from './libc.ts'

export type Confinement = {
  /** Absolute. */
  program: string
  args: string[]
  env: Record<string, string>
  cwd: string
  /** Existing files and directories without symbolic links. */
  read: string[]
  write: string[]
  /** May open network connections. */
  network: boolean
  /** May connect to Unix sockets, each of which leads out: Landlock does not see them. */
  unix_sockets: boolean
  /** Of each of its processes. */
  memory_bytes: number
}

/** System calls that have one number on all architectures. */
const LANDLOCK_CREATE_RULESET = 444
const LANDLOCK_ADD_RULE = 445
const LANDLOCK_RESTRICT_SELF = 446
const CLOSE_RANGE = 436
const OPENAT2 = 437
const IO_URING_SETUP = 425

/** Of both architectures; the others are not confined. `audit`: as <linux/audit.h> names them. */
const ARCHITECTURES = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    truncate: 76,
    capset: 126,
    // add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd, setpriority, ioprio_set
    denied: [248, 249, 250, 298, 321, 323, 141, 251],
    // prlimit64, sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr
    ofItselfOnly: [302, 142, 144, 203, 314],
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    truncate: 45,
    capset: 91,
    denied: [217, 218, 219, 241, 280, 282, 140, 30],
    ofItselfOnly: [261, 118, 119, 122, 274],
  },
}

/** Rights of <linux/landlock.h>. */
const EXECUTE = 1 << 0
const WRITE_FILE = 1 << 1
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3
const MAKE_CHAR = 1 << 6
const MAKE_BLOCK = 1 << 11
const TRUNCATE = 1 << 14
const IOCTL_DEV = 1 << 15
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
const READ = EXECUTE | READ_FILE | READ_DIR
/** By the version of the interface; later ones handle what the last does. */
const HANDLED = [0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff]
const DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom']

const PR_SET_PDEATHSIG = 1
const PR_SET_SECCOMP = 22
const PR_SET_NO_NEW_PRIVS = 38
const SECCOMP_MODE_FILTER = 2
const SIGKILL = 9
const SIGPIPE = 13
const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const CLOSE_ON_EXEC = 4
const RLIMIT = { fileSize: 1, data: 2, core: 4, processes: 6, files: 7 }
const CAP_DAC_OVERRIDE = 1 << 1

const MAX_FILE_BYTES = 2 ** 30
const MAX_OPEN_FILES = 8192
/** Processes and threads, beyond those that its user has when it starts. */
const MAX_PROCESSES = 512
/** Of 1 ms each. */
const MAX_WAITS = 2_000
/** Half as much of a busy core as the gateway. */
const NICE = 5
/** When memory is short the system ends it first. */
const OOM_SCORE = '800'

const open = () =>
  openFunctions({
    syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
    getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
    setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
    setsid: { args: [], returns: 'i32' },
    signal: { args: ['i32', 'u64'], returns: 'u64' },
    execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' },
  })
type System = NonNullable<ReturnType<typeof open>>

function call({ syscall }: System, number: number, ...given: number[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = given
  return Number(syscall(number, a, b, c, d, e))
}

const address = (data: NodeJS.TypedArray): number => ptr(data)

class NotConfined extends Error {}

/** The version of Landlock's interface; 0: the system has none, or it is off. */
export function landlockVersion(system = process.platform === 'linux' ? open() : undefined): number {
  const isKnown = Object.hasOwn(ARCHITECTURES, process.arch)
  return system && isKnown ? Math.max(0, call(system, LANDLOCK_CREATE_RULESET, 0, 0, 1)) : 0
}

/** Returns never. Throws NotConfined, before the program runs, where the system refuses any of it. */
export function becomeConfined(confinement: Confinement): never {
  const system = process.platform === 'linux' ? open() : undefined
  const version = landlockVersion(system)
  if (!system || version === 0) {
    throw new NotConfined('this system has no Landlock (Linux 5.13 or newer, enabled), so it cannot be confined')
  }
  const architecture = ARCHITECTURES[process.arch as keyof typeof ARCHITECTURES]
  const { program, args, env, cwd } = confinement
  const counted = process.getuid?.() === 0 ? 0 : threadsOfUser() // root's are not limited
  yieldToGateway()
  system.setsid() // so that it is ended with those that it starts
  must('no_new_privs', system.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
  must('the signal at the end of the gateway', system.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
  dropCapabilities(system, architecture.capset)
  restrict(system, version, confinement)
  process.chdir(cwd)
  must('close_range', call(system, CLOSE_RANGE, 3, 0xffffffff, CLOSE_ON_EXEC))
  system.signal(SIGPIPE, 0) // the runtime ignores it, and a program would inherit that
  const path = textAt(program)
  const argv = listAt([program, ...args])
  const envp = listAt(Object.entries(env).map(([name, value]) => `${name}=${value}`))
  const filter = filterProgram(filterOf(architecture, version, confinement))
  if (counted > 0) limit(system, RLIMIT.processes, counted + MAX_PROCESSES)
  limit(system, RLIMIT.files, MAX_OPEN_FILES)
  limit(system, RLIMIT.fileSize, MAX_FILE_BYTES)
  limit(system, RLIMIT.core, 0)
  const memory = lowered(system, RLIMIT.data, confinement.memory_bytes)
  must('seccomp', system.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address(filter), 0, 0))
  awaitSleepingThreads()
  // Last: the runtime has reserved more, so that a thread of it which asks for memory from here on ends the process.
  must('setrlimit', system.setrlimit(RLIMIT.data, memory))
  system.execve(path, argv.pointers, envp.pointers)
  throw new NotConfined(`${program} cannot be executed; the script or its interpreter may lie outside of what it reads`)
}

function must(what: string, result: number): number {
  if (result < 0) throw new NotConfined(`the system refused ${what}, so it cannot be confined`)
  return result
}

function restrict(system: System, version: number, { read, write, network }: Confinement): void {
  const handled = HANDLED[Math.min(version, HANDLED.length - 1)] ?? 0
  const tcp = version >= 4 && !network ? 3 : 0
  const scopes = version >= 6 ? 3 : 0 // abstract Unix sockets and signals
  const attributes = new BigUint64Array([BigInt(handled), BigInt(tcp), BigInt(scopes)])
  // An older kernel accepts the longer structure where the rest is zero.
  const ruleset = must('Landlock', call(system, LANDLOCK_CREATE_RULESET, address(attributes), 24, 0))
  const all = handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
  const allow = (path: string, rights: number) => addRule(system, { ruleset, path, rights: rights & handled })
  for (const path of read) allow(path, READ)
  for (const path of DEVICES) allow(path, READ_FILE | WRITE_FILE)
  for (const path of write) allow(path, all)
  must('Landlock', call(system, LANDLOCK_RESTRICT_SELF, ruleset, 0))
}

/** By a path without symbolic links: who may write in a part of it cannot lead the rule elsewhere. */
function addRule(system: System, { ruleset, path, rights }: { ruleset: number; path: string; rights: number }): void {
  const [O_PATH, O_CLOEXEC, AT_FDCWD, RESOLVE_NO_SYMLINKS] = [0o10000000n, 0o2000000n, -100, 4n]
  const how = new BigUint64Array([O_PATH | O_CLOEXEC, 0n, RESOLVE_NO_SYMLINKS])
  const name = textAt(path)
  const descriptor = call(system, OPENAT2, AT_FDCWD, address(name), address(how), how.byteLength)
  if (descriptor < 0) {
    if (DEVICES.includes(path)) return
    throw new NotConfined(`${path} cannot be opened, or leads through a symbolic link`)
  }
  const rule = new DataView(new ArrayBuffer(12))
  const isDirectory = statSync(`/proc/self/fd/${descriptor}`).isDirectory()
  rule.setBigUint64(0, BigInt(isDirectory ? rights : rights & OF_FILES), true)
  rule.setInt32(8, descriptor, true)
  const beneath = new Uint8Array(rule.buffer)
  must(`a rule for ${path}`, call(system, LANDLOCK_ADD_RULE, ruleset, 1, address(beneath), 0))
}

/** Where the gateway runs as root: it may go on to read files of other users where Landlock lets it, and no more. */
function dropCapabilities(system: System, capset: number): void {
  const held = /^CapPrm:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
  if (BigInt(`0x${held ?? 0}`) === 0n) return
  const kept = Number(BigInt(`0x${held}`) & BigInt(CAP_DAC_OVERRIDE))
  const header = new Uint32Array([0x20080522, 0])
  const sets = new Uint32Array([kept, kept, 0, 0, 0, 0])
  must('capset', call(system, capset, address(header), address(sets)))
}

/** Neither matters so much that the program must not run without. */
function yieldToGateway(): void {
  try {
    setPriority(NICE)
    writeFileSync('/proc/self/oom_score_adj', OOM_SCORE)
  } catch {
    // A container may refuse it.
  }
}

/** The other threads of the runtime. One that has just been made may still ask for memory. */
function awaitSleepingThreads(): void {
  const others = () => readdirSync('/proc/self/task').filter((id) => Number(id) !== process.pid)
  for (let left = MAX_WAITS; left > 0 && others().some(isRunning); left--) Bun.sleepSync(1)
}

function isRunning(thread: string): boolean {
  try {
    return /\) [^S]/.test(readFileSync(`/proc/self/task/${thread}/stat`, 'latin1'))
  } catch {
    return false // it has ended
  }
}

const limit = (system: System, resource: number, most: number) =>
  must('setrlimit', system.setrlimit(resource, lowered(system, resource, most)))

function lowered({ getrlimit }: System, resource: number, most: number): BigUint64Array {
  const limits = new BigUint64Array(2)
  must('getrlimit', getrlimit(resource, limits))
  return limits.fill(limits.reduce((a, b) => (a < b ? a : b), BigInt(most)))
}

/** As the system counts them for its limit. */
function threadsOfUser(): number {
  const user = process.getuid?.()
  const threadsOf = (id: string): number => {
    try {
      if (statSync(`/proc/${id}`).uid !== user) return 0
      return Number(/^Threads:\s*(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'latin1'))?.[1] ?? 0)
    } catch {
      return 0 // it has ended
    }
  }
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.reduce((sum, id) => sum + threadsOf(id), 0)
}

/** Instructions and offsets of <linux/seccomp.h>. */
const LOAD = 0x20
const IF_EQUAL = 0x15
const IF_AT_LEAST = 0x35
const RETURN = 0x06
const NUMBER = 0
const ARCHITECTURE = 4
const FIRST_ARGUMENT = 16
const ALLOW: FilterInstruction = [RETURN, 0, 0, 0x7fff0000]
/** EACCES. */
const DENY: FilterInstruction = [RETURN, 0, 0, 0x00050000 + 13]

/** What Landlock does not see: sockets, limits and priorities of other processes, and parts of the kernel with a past. */
function filterOf(
  { audit, socket, truncate, denied, ofItselfOnly }: (typeof ARCHITECTURES)['x64'],
  version: number,
  { network, unix_sockets }: Confinement,
): FilterInstruction[] {
  const families = [...(network ? [AF_INET, AF_INET6, AF_NETLINK] : []), ...(unix_sockets ? [AF_UNIX] : [])]
  // Before version 3 Landlock does not see that a file is cut. Operations of an io_uring pass no filter.
  const never = [IO_URING_SETUP, ...denied, ...(version < 3 ? [truncate] : [])]
  const when = (value: number, then: FilterInstruction): FilterInstruction[] => [[IF_EQUAL, 0, 1, value], then]
  const onCall = (number: number, then: FilterInstruction[]): FilterInstruction[] => [
    [IF_EQUAL, 0, then.length, number],
    ...then,
  ]
  const first: FilterInstruction = [LOAD, 0, 0, FIRST_ARGUMENT]
  return [
    [LOAD, 0, 0, ARCHITECTURE],
    [IF_EQUAL, 1, 0, audit],
    DENY,
    [LOAD, 0, 0, NUMBER],
    [IF_AT_LEAST, 0, 1, 0x40000000], // x32
    DENY,
    ...never.flatMap((number) => when(number, DENY)),
    ...ofItselfOnly.flatMap((number) => onCall(number, [first, ...when(0, ALLOW), DENY])),
    ...onCall(socket, [first, ...families.flatMap((family) => when(family, ALLOW)), DENY]),
    ALLOW,
  ]
}

const textAt = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`)

function listAt(texts: string[]) {
  const kept = texts.map(textAt)
  return { kept, pointers: new BigUint64Array([...kept.map((text) => BigInt(address(text))), 0n]) }
}
