/** `gatehouse version`: prints the version. */
import package_ from '../../package.json' with { type: 'json' }
import { readArguments } from './arguments.ts'
import { json, type Terminal } from './terminal.ts'

export const VERSION: string = package_.version

const HELP = `Usage: gatehouse version [--json]

Prints the version of Gatehouse and of the runtime.
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const given = readArguments({ command: 'version', args, flags: {} })
  const version = { gatehouse: VERSION, bun: Bun.version, platform: `${process.platform}-${process.arch}` }
  if (given.has('help')) terminal.out(HELP)
  else if (given.has('json')) terminal.out(json(version))
  else terminal.out(`gatehouse ${version.gatehouse} (bun ${version.bun}, ${version.platform})\n`)
  return 0
}
