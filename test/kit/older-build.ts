/** Builds of earlier schemas, from the history of the repository. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')
const FOLDERS = ['bin', 'src', 'packages', 'scripts', 'package.json', 'tsconfig.json']

const git = (args: string[]): string =>
  String(spawnSync('git', ['-C', ROOT, ...args], { maxBuffer: 2 ** 28 }).stdout).trim()

type OlderBuild = { schema: number; commit: string }

/** The last build of each of the `count` schemas before this one; undefined: the history is not there. */
export function olderBuilds(count: number): OlderBuild[] | undefined {
  if (git(['rev-parse', '--is-shallow-repository']) !== 'false') return undefined
  const added = git(['log', '--diff-filter=A', '--format=%H', '--name-only', '--', 'src/store/migrations'])
  const builds: OlderBuild[] = []
  let commit = ''
  for (const line of added.split('\n').filter((text) => text !== '')) {
    const [, number] = /^src\/store\/migrations\/(\d{4})-/.exec(line) ?? []
    if (number === undefined) commit = line
    else builds.push({ schema: Number(number) - 1, commit: `${commit}~1` })
  }
  const schemas = [...new Set(builds.map(({ schema }) => schema))].sort((one, other) => other - one).slice(0, count)
  const found = schemas.flatMap((schema) => builds.find((build) => build.schema === schema) ?? [])
  return found.length === count ? found : undefined
}

/** The path of its command; it runs with the packages of this checkout. */
export function checkOut({ commit }: OlderBuild): { command: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-older-'))
  mkdirSync(directory, { recursive: true })
  const archive = join(directory, 'build.tar')
  git(['archive', '--format=tar', `--output=${archive}`, commit, ...FOLDERS])
  const { status, stderr } = spawnSync('tar', ['-xf', archive, '-C', directory])
  if (status !== 0) throw new Error(`The build ${commit} cannot be unpacked: ${stderr}`)
  rmSync(archive)
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  return {
    command: join(directory, 'bin/gatehouse'),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
