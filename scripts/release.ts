/**
 * `npm run release -- VERSION [TARGET ...]`: makes all files of a release in `dist/release` and publishes nothing. It sets
 * the version, dates its section of the changelog and commits both, unless they are so already. Without a target, for all.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { LICENSES, TARGETS } from './build-binary.ts'
import { buildPackages } from './build-package.ts'
import { ROOT } from './packaging/program.ts'
import { provenance, sha256 } from './packaging/provenance.ts'
import { billOfMaterials } from './packaging/sbom.ts'
import { changesOf, checkVersion, uncommitted, writeVersion } from './packaging/version-files.ts'

const OUT = join(ROOT, 'dist/release')
const git = (...args: string[]) => execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim()

/** An archive of a directory that two builds of one commit make equal. Needs GNU tar. */
function archive(file: string, { parent, name, seconds }: { parent: string; name: string; seconds: string }): string {
  const same = ['--sort=name', `--mtime=@${seconds}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX']
  // A link of the chart leads to the file that it means.
  execFileSync('tar', [...same, '--dereference', '--use-compress-program=gzip -n -9', '-cf', file, '-C', parent, name])
  return file
}

/** Writes the files of a release of the version that package.json has. Returns their paths. */
export async function makeRelease({ version, targets }: { version: string; targets: string[] }): Promise<string[]> {
  const [commit = '', seconds = '', timestamp = ''] = git('log', '-1', '--format=%H %ct %cI').split(' ')
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(OUT, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
  const packed = await buildPackages(targets)
  // The client package builds itself before it is packed.
  const [client] = JSON.parse(
    execFileSync(
      'npm',
      ['pack', '--json', '--loglevel=error', '--workspace', 'packages/ai-sdk', '--pack-destination', OUT],
      {
        cwd: ROOT,
        encoding: 'utf8',
      },
    ).replace(/^[^[]*/, ''),
  )
  const files = [join(OUT, client.filename)]
  for (const file of packed) {
    cpSync(file, join(OUT, basename(file)))
    files.push(join(OUT, basename(file)))
  }
  for (const target of targets) {
    const name = `gatehouse-${version}-${target}`
    const directory = join(work, name)
    mkdirSync(directory)
    cpSync(join(ROOT, `dist/gatehouse-${target}`), join(directory, 'gatehouse'))
    cpSync(LICENSES, join(directory, 'THIRD_PARTY_LICENSES'))
    for (const file of ['LICENSE', 'README.md', 'gatehouse.example.yaml'])
      cpSync(join(ROOT, file), join(directory, file))
    if (target.startsWith('linux-'))
      cpSync(join(ROOT, 'deploy/gatehouse.service'), join(directory, 'gatehouse.service'))
    files.push(archive(join(OUT, `${name}.tar.gz`), { parent: work, name, seconds }))
  }
  rmSync(work, { recursive: true })
  const chart = { parent: join(ROOT, 'deploy/helm'), name: 'gatehouse', seconds }
  files.push(archive(join(OUT, `gatehouse-chart-${version}.tgz`), chart))
  const write = (name: string, content: string | object) => {
    const file = join(OUT, name)
    writeFileSync(file, typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`)
    files.push(file)
  }
  cpSync(LICENSES, join(OUT, 'THIRD_PARTY_LICENSES'))
  files.push(join(OUT, 'THIRD_PARTY_LICENSES'))
  write('CHANGES.md', changesOf(ROOT, version))
  write(`gatehouse-${version}.cdx.json`, billOfMaterials({ version, timestamp }))
  const { repository } = await Bun.file(join(ROOT, 'package.json')).json()
  write(
    `gatehouse-${version}.provenance.json`,
    provenance({ version, targets, files, commit, repository: repository?.url }),
  )
  const sums = files.map((file) => `${sha256(file)}  ${basename(file)}\n`).sort()
  write('SHA256SUMS', sums.join(''))
  return files
}

async function main([given, ...named]: string[]): Promise<void> {
  const version = checkVersion(given)
  const targets = named.length > 0 ? named : Object.keys(TARGETS)
  for (const target of targets)
    if (!Object.hasOwn(TARGETS, target))
      throw new Error(`${target}: no such target; there are ${Object.keys(TARGETS).join(', ')}`)
  const changed = uncommitted(ROOT)
  if (changed !== '') throw new Error(`commit or undo these first, since a release is of a commit:\n${changed}`)
  const files = writeVersion({ root: ROOT, version, date: new Date().toISOString().slice(0, 10) })
  if (files.length > 0) git('commit', '--quiet', '--message', `chore: release ${version}`, '--', ...files)
  const made = await makeRelease({ version, targets })
  process.stdout.write(made.map((file) => `${file.slice(ROOT.length + 1)}\n`).join(''))
  process.stdout.write(
    `\n${files.length > 0 ? `Committed the version in ${files.join(', ')}. ` : ''}Nothing was published, tagged or signed.\n`,
  )
}

if (import.meta.main) {
  try {
    await main(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`release: ${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
