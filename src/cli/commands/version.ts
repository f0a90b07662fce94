/** `gatehouse version`: prints the version and the commit. */
import package_ from '../../../package.json' with { type: 'json' }
import { thisBuild } from '../../kit/build-info.ts'
import { plainCommand } from '../command.ts'

export const VERSION: string = package_.version

const HELP = `Usage: gatehouse version [--json]

Prints the version of Gatehouse and of the runtime, and the commit with its date where it is known.
`

export const run = plainCommand('version', HELP, { run: show })

async function show() {
  const build = await thisBuild()
  const version = { gatehouse: VERSION, ...build, bun: Bun.version, platform: `${process.platform}-${process.arch}` }
  const commit = build ? `commit ${build.commit}, ${build.date}, ` : ''
  return { data: version, text: () => `gatehouse ${VERSION} (${commit}bun ${version.bun}, ${version.platform})\n` }
}
