/**
 * Records what real coding agents send, as fixtures: `npm run record:agents [-- --only <agent>] [--installed <directory>]`.
 *
 * It installs the pinned versions into a temporary directory (or takes those of an earlier run with `--installed`), runs
 * each agent without a terminal against a provider on loopback, and writes test/fixtures/agents/<agent>/. Prose is replaced
 * by filler. All other traffic of the agents is sent to a port that nobody listens on. To be certain, install first, then
 * run inside a network namespace:
 *
 *     unshare --net sh -c 'ip link set lo up; npm run record:agents -- --installed <directory>'
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AGENTS, type Agent } from './record-agents/agents.ts'
import { OURS, runAgent } from './record-agents/run.ts'
import { createScrubber, foreignProse, type Recorded } from './record-agents/scrub.ts'

const FIXTURES = join(import.meta.dir, '../test/fixtures/agents')
/** A tool loop with two turns of calls. */
const REQUESTS_AT_LEAST = 3

const { values } = parseArgs({
  options: { only: { type: 'string' }, installed: { type: 'string' }, 'install-only': { type: 'boolean' } },
})
const say = (text: string) => process.stdout.write(`${text}\n`)

const chosen = AGENTS.filter(({ id }) => values.only === undefined || id === values.only)
if (chosen.length === 0) fail(`There is no agent "${values.only}"; there are ${AGENTS.map(({ id }) => id).join(', ')}.`)
const installed = values.installed ?? mkdtempSync(join(tmpdir(), 'record-agents-'))
if (values.installed === undefined) install(installed)
if (values['install-only']) say(`Installed in ${installed}; run again with --installed ${installed}.`)
else for (const agent of chosen) await record(agent)

/** Install scripts stay off: all binaries are in the packages. */
function install(directory: string): void {
  for (const agent of new Map(chosen.map((one) => [one.package, one])).values()) {
    const target = packagesOf(agent, directory)
    mkdirSync(target, { recursive: true })
    writeFileSync(join(target, 'package.json'), '{"private":true}')
    say(`Installing ${agent.package}@${agent.version} ...`)
    const command = [
      'npm',
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      `${agent.package}@${agent.version}`,
    ]
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: target, stdout: 'ignore', stderr: 'pipe' })
    if (exitCode !== 0) fail(`npm could not install ${agent.package}@${agent.version}:\n${stderr.toString()}`)
  }
}

function packagesOf(agent: Agent, directory: string): string {
  return join(directory, agent.package.replaceAll(/[@/]/g, '_'))
}

async function record(agent: Agent): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'record-agent-'))
  try {
    const packages = join(packagesOf(agent, installed), 'node_modules')
    const run = await runAgent(agent, packages, directory)
    const scrub = createScrubber({ project: run.project, home: run.home, packages, ours: OURS })
    const recorded = run.requests.map(({ method, path, headers, body }) =>
      scrub({ method, path, headers, body: body === '' ? null : (JSON.parse(body) as unknown) }),
    )
    if (recorded.length < REQUESTS_AT_LEAST)
      fail(
        `${agent.title} sent ${recorded.length} requests, not ${REQUESTS_AT_LEAST} or more. It wrote:\n${run.output}`,
      )
    const foreign = recorded.flatMap((request) => foreignProse(request, OURS))
    if (foreign.length > 0) fail(`${agent.title}: prose is left:\n${foreign.join('\n')}`)
    write(agent, recorded)
    say(`${agent.title}: ${recorded.length} requests.`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function write(agent: Agent, recorded: Recorded[]): void {
  const folder = join(FIXTURES, agent.id)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [at, request] of recorded.entries())
    writeFileSync(join(folder, `${at + 1}.json`), `${JSON.stringify(request, null, 1)}\n`)
  writeFileSync(join(folder, 'README.md'), readme(agent, new Date().toISOString().slice(0, 10)))
}

function readme(agent: Agent, date: string): string {
  return `# ${agent.title}

Source: recorded on ${date} from ${agent.package} ${agent.version}, by \`npm run record:agents\`.

The files are the requests of one run, in order. The provider was a script on loopback. Replaced: prose (by filler of the
same length), keys, paths, ids, dates. Not replaced: structure, names, enum values, headers that are not credentials.
`
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
