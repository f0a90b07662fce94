/**
 * `npm run build:package [-- TARGET ...]`: what `npx gatehouse` runs, as archives in `dist/npm` that `npm publish` takes.
 * The package `gatehouse` is a launcher; the executable of each system is a package of its own, of which npm installs
 * the one that fits. Without a target, for this machine.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildBinaries, LICENSES, TARGETS } from './build-binary.ts'
import { ROOT } from './packaging/program.ts'

const OUT = join(ROOT, 'dist/npm')
const packageName = (target: string) => `@gatehouse/${target}`

/** npm installs a package only where all of these fit. */
function systemOf(target: string) {
  const [system, cpu, libc] = target.split('-')
  return {
    os: [system === 'macos' ? 'darwin' : system],
    cpu: [cpu],
    ...(system === 'linux' && { libc: [libc ?? 'glibc'] }),
  }
}

/** The path of an archive that npm packed. */
function pack(directory: string): string {
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', OUT], {
    cwd: directory,
    encoding: 'utf8',
  })
  return join(OUT, JSON.parse(packed)[0].filename)
}

export async function buildPackages(targets: string[]): Promise<string[]> {
  const { version, description, license, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  rmSync(OUT, { recursive: true, force: true })
  const describe = (directory: string, content: object) => {
    writeFileSync(join(directory, 'package.json'), `${JSON.stringify({ version, license, ...content }, null, 2)}\n`)
    cpSync(join(ROOT, 'LICENSE'), join(directory, 'LICENSE'))
  }
  const archives: string[] = []
  for (const [target, file] of await buildBinaries(targets)) {
    const directory = join(OUT, target)
    mkdirSync(join(directory, 'bin'), { recursive: true })
    describe(directory, {
      name: packageName(target),
      description: `The executable of Gatehouse for ${target}.`,
      ...systemOf(target),
      files: ['bin', 'THIRD_PARTY_LICENSES'],
    })
    cpSync(file, join(directory, 'bin/gatehouse'))
    cpSync(LICENSES, join(directory, 'THIRD_PARTY_LICENSES'))
    archives.push(pack(directory))
    rmSync(directory, { recursive: true })
  }
  const directory = join(OUT, 'gatehouse')
  mkdirSync(join(directory, 'bin'), { recursive: true })
  describe(directory, {
    name: 'gatehouse',
    description,
    engines,
    bin: { gatehouse: 'bin/gatehouse' },
    files: ['bin'],
    // All of them, whichever were made here: an archive that is published names every system.
    optionalDependencies: Object.fromEntries(Object.keys(TARGETS).map((target) => [packageName(target), version])),
  })
  cpSync(join(ROOT, 'scripts/packaging/launcher.sh'), join(directory, 'bin/gatehouse'))
  chmodSync(join(directory, 'bin/gatehouse'), 0o755)
  cpSync(join(ROOT, 'README.md'), join(directory, 'README.md'))
  archives.push(pack(directory))
  rmSync(directory, { recursive: true })
  return archives
}

if (import.meta.main) {
  for (const file of await buildPackages(process.argv.slice(2)))
    process.stdout.write(`${file.slice(ROOT.length + 1)}  ${(statSync(file).size / 1e6).toFixed(1)} MB\n`)
}
