/** Machines of a network on this one: network namespaces with a link each, which can be cut. Needs root on Linux. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listenForRelay, type Relay } from './relay.ts'

const IP = Bun.which('ip', { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` })
/** At most 15 characters name a link: the number of the process makes the names its own. */
const PREFIX = `gh${process.pid % 100_000}`
/** RFC 2544 keeps 198.18.0.0/15 for tests of networks, so no real network has these addresses. */
const SUBNET = `198.${18 + (process.pid % 2)}.${Math.floor(process.pid / 2) % 256}`

export type Machine = {
  address: string
  /** A command that runs this command on the machine, with the arguments that it is given. */
  command(command: string): string
  /** Takes the link down: packets both ways are lost, and nobody is told. */
  cut(): void
  mend(): void
}

export type Network = {
  /** The address of this machine in the network. */
  address: string
  machines: Machine[]
  /** A port of `address` that passes bytes to a port of loopback, and can be cut. */
  relay(port: number): Relay
  remove(): Promise<void>
}

function ip(...words: string[]): void {
  const { status, stderr } = spawnSync(IP ?? 'ip', words)
  if (status !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`)
}

function canCreate(): boolean {
  if (IP === null || process.platform !== 'linux' || process.getuid?.() !== 0) return false
  const name = `${PREFIX}probe`
  // Entering one needs more than creating it.
  const isUsable =
    spawnSync(IP, ['netns', 'add', name]).status === 0 && spawnSync(IP, ['netns', 'exec', name, 'true']).status === 0
  spawnSync(IP, ['netns', 'del', name])
  const hasLinks = spawnSync(IP, ['link', 'add', `${PREFIX}p`, 'type', 'bridge']).status === 0
  spawnSync(IP, ['link', 'del', `${PREFIX}p`])
  return isUsable && hasLinks
}

/** Debian: `apt-get install iproute2`, as root. */
export const hasMachines = canCreate()
if (!hasMachines) process.stderr.write('Tests of several machines are skipped: they need root, Linux and iproute2.\n')

/** Removes what was created once its standard input closes, which happens even if this process is killed. */
const GUARD = `
  trap '' INT HUP TERM
  cat >/dev/null
  for name in $2; do "$1" netns del "$name"; done
  "$1" link del "$3"`

export function createNetwork(count: number): Network {
  const bridge = `${PREFIX}br`
  const names = Array.from({ length: count }, (_, index) => `${PREFIX}m${index}`)
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-machines-'))
  const guard = spawn('sh', ['-c', GUARD, 'guard', IP ?? 'ip', names.join(' '), bridge], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.unref()
  const address = `${SUBNET}.1`
  ip('link', 'add', bridge, 'type', 'bridge')
  ip('addr', 'add', `${address}/24`, 'dev', bridge)
  ip('link', 'set', bridge, 'up')
  const machines = names.map((name, index) => createMachine({ name, bridge, directory, host: 11 + index }))
  const relays: Relay[] = []
  return {
    address,
    machines,
    relay(port) {
      const relay = listenForRelay(address, port)
      relays.push(relay)
      return relay
    },
    async remove() {
      for (const relay of relays) relay.stop(true)
      guard.stdin.end()
      await new Promise((resolve) => guard.once('exit', resolve))
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

type MachineParts = { name: string; bridge: string; directory: string; host: number }

function createMachine({ name, bridge, directory, host }: MachineParts): Machine {
  const link = `${name}h`
  const address = `${SUBNET}.${host}`
  ip('netns', 'add', name)
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  ip('link', 'set', link, 'master', bridge)
  ip('link', 'set', link, 'up')
  ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
  ip('-n', name, 'link', 'set', 'eth0', 'up')
  ip('-n', name, 'link', 'set', 'lo', 'up')
  return {
    address,
    command(command) {
      const path = join(directory, name)
      writeFileSync(path, `#!/bin/sh\nexec ${IP} netns exec ${name} ${command} "$@"\n`)
      chmodSync(path, 0o755)
      return path
    },
    cut: () => ip('link', 'set', link, 'down'),
    mend: () => ip('link', 'set', link, 'up'),
  }
}
