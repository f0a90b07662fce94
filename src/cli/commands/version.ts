/** `gatehouse version`: prints the version and the commit. */
import package_ from '../../../package.json' with { type: 'json' }
import { thisBuild } from '../../kit/build-info.ts'
import { readCommand } from '../arguments.ts'
import { json, type Terminal } from '../terminal.ts'

export const VERSION: string = package_.version

const HELP = `Usage: gatehouse version [--json]

Prints the version of Gatehouse and of the runtime, and the commit with its date where it is known.
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const given = readCommand({ help: HELP, terminal, command: 'version', args, flags: {} })
  if (!given) return 0
  const build = await thisBuild()
  const version = { gatehouse: VERSION, ...build, bun: Bun.version, platform: `${process.platform}-${process.arch}` }
  if (given.has('json')) terminal.out(json(version))
  else {
    const commit = build ? `commit ${build.commit}, ${build.date}, ` : ''
    terminal.out(`gatehouse ${VERSION} (${commit}bun ${version.bun}, ${version.platform})\n`)
  }
  return 0
}
