/** Contents of a release: equal archives of equal builds, checksums, the bill of materials, provenance, licences. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import Ajv from 'ajv'
import metadata from '../package.json' with { type: 'json' }
import lock from '../package-lock.json' with { type: 'json' }
import { hostTarget, oneCopy } from '../scripts/build-binary.ts'
import { sha256 } from '../scripts/packaging/provenance.ts'
import { billOfMaterials } from '../scripts/packaging/sbom.ts'
import { changesOf, checkVersion, uncommitted, writeVersion } from '../scripts/packaging/version-files.ts'
import { makeRelease } from '../scripts/release.ts'

const ROOT = join(import.meta.dir, '..')
const OUT = join(ROOT, 'dist/release')
const SCHEMAS = join(process.env.GATEHOUSE_DEPLOY_TOOLS ?? join(ROOT, 'dist/.deploy-tools'), 'cyclonedx')
const { version } = metadata
const target = hostTarget()
const root = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

type Bom = {
  components: { name: string; version: string; purl: string; hashes?: { content: string }[] }[]
  dependencies: { ref: string; dependsOn: string[] }[]
  serialNumber: string
}
const bom = billOfMaterials({ version, timestamp: '2026-11-24T12:00:00Z' }) as Bom

it('a release is of a commit: a file that is not in it is named', () => {
  const directory = join(root, 'of-a-commit')
  execFileSync('git', ['init', '--quiet', directory])
  expect(uncommitted(directory)).toBe('')
  mkdirSync(join(directory, 'deploy/helm'), { recursive: true })
  writeFileSync(join(directory, 'deploy/helm/secrets.yaml'), 'password: x')
  expect(uncommitted(directory)).toBe('?? deploy/helm/secrets.yaml')
})

describe('the bill of materials', () => {
  it('has every package that is installed without development tools, once', () => {
    const named = Object.entries(
      lock.packages as Record<string, { name?: string; dev?: boolean; link?: boolean; version?: string }>,
    )
      .filter(([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link)
      .map(([path, one]) => `${one.name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${one.version}`)
    expect(bom.components.map(({ name, version }) => `${name}@${version}`).sort()).toEqual([...new Set(named)].sort())
  })

  it('has the dependencies of each, which are components, and is the same again', () => {
    const refs = new Set(bom.components.map(({ purl }) => purl))
    expect(bom.dependencies.length).toBe(refs.size + 1)
    for (const { dependsOn } of bom.dependencies) for (const ref of dependsOn) expect(refs).toContain(ref)
    const reached = new Set(bom.dependencies.flatMap(({ dependsOn }) => dependsOn))
    expect([...refs].filter((ref) => !reached.has(ref))).toEqual([])
    expect(billOfMaterials({ version, timestamp: '2026-11-24T12:00:00Z' })).toEqual(bom)
  })

  it.skipIf(!existsSync(SCHEMAS))('is valid by the schema of CycloneDX 1.6, which rejects a broken one', () => {
    const read = (name: string) => JSON.parse(readFileSync(join(SCHEMAS, `${name}.SNAPSHOT.schema.json`), 'utf8'))
    const ajv = new Ajv({ strict: false, validateFormats: false })
    for (const name of ['spdx', 'jsf-0.82']) {
      const { $id: _, ...schema } = read(name)
      ajv.addSchema(schema, `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`)
    }
    const validate = ajv.compile(read('bom-1.6'))
    expect([validate(bom), validate.errors]).toEqual([true, null])
    expect(validate({ ...bom, components: [{ type: 'library' }] })).toBe(false)
  })
})

describe('the version of a release', () => {
  const copy = () => {
    const directory = mkdtempSync(join(root, 'version-'))
    mkdirSync(join(directory, 'deploy/helm/gatehouse'), { recursive: true })
    for (const file of ['package.json', 'package-lock.json', 'CHANGELOG.md', 'deploy/helm/gatehouse/Chart.yaml'])
      cpSync(join(ROOT, file), join(directory, file))
    return directory
  }

  it('is written where it stands, with the date of its changes, once', () => {
    const directory = copy()
    const files = writeVersion({ root: directory, version, date: '2026-12-01' })
    expect(files.filter((name) => name !== 'CHANGELOG.md')).toEqual([])
    expect(readFileSync(join(directory, 'CHANGELOG.md'), 'utf8')).toContain(`\n## [${version}] - 20`)
    expect(writeVersion({ root: directory, version, date: '2026-12-02' })).toEqual([])
    expect(changesOf(directory, version)).toContain('### Added')
  })

  it('is refused where the changelog does not have it, and where it is none', () => {
    const next = { root: copy(), version: '99.0.0', date: '2026-12-01' }
    writeVersion({ ...next, version })
    expect(() => writeVersion(next)).toThrow('CHANGELOG.md has neither "## [99.0.0]"')
    expect(() => checkVersion('v1')).toThrow('give a version')
    expect(() => checkVersion(undefined)).toThrow('no version')
  })
})

// A release is of a commit.
describe.skipIf(!existsSync(join(ROOT, '.git')))('a release', () => {
  let files: string[]
  const first = new Map<string, string>()
  beforeAll(async () => {
    for (const file of await makeRelease({ version, targets: [target] })) first.set(basename(file), sha256(file))
    files = await makeRelease({ version, targets: [target] })
  }, 600_000)

  it('is equal where it is made again of the same commit', () => {
    expect(files.map((file) => [basename(file), sha256(file)])).toEqual([...first])
  })

  it('holds the same one of equal packages, whichever its bundler comes to first', () => {
    const held = (...users: string[]) => {
      const resolves: ((asked: { path: string; resolveDir: string }) => unknown)[] = []
      oneCopy.setup({ onResolve: (_: unknown, given: (typeof resolves)[0]) => resolves.push(given) } as never)
      return users.map((user) => resolves[0]?.({ path: 'zod', resolveDir: join(ROOT, 'node_modules', user) }))
    }
    const users = ['@modelcontextprotocol/client', '@modelcontextprotocol/server']
    const [one, other] = held(...users)
    expect(one).toEqual({ path: expect.stringContaining('/zod/') })
    expect([other, ...held(...users.toReversed())]).toEqual([one, one, one])
  })

  it('has checksums and the origin of each of its files', () => {
    const sums = execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: OUT, encoding: 'utf8' })
    expect(sums.match(/: OK$/gm)?.length).toBe(files.length - 1)
    const statement = JSON.parse(readFileSync(join(OUT, `gatehouse-${version}.provenance.json`), 'utf8'))
    expect(statement).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      predicateType: 'https://slsa.dev/provenance/v1',
    })
    for (const { name, digest } of statement.subject) expect(digest.sha256).toBe(sha256(join(OUT, name)))
    const [source] = statement.predicate.buildDefinition.resolvedDependencies
    expect(source.digest.gitCommit).toMatch(/^[0-9a-f]{40}$/)
  })

  it('has an archive of each target that runs, with the licences of all that is inside', () => {
    const directory = join(root, 'unpacked')
    mkdirSync(directory)
    const name = `gatehouse-${version}-${target}`
    execFileSync('tar', ['-xzf', join(OUT, `${name}.tar.gz`), '-C', directory])
    const run = execFileSync(join(directory, name, 'gatehouse'), ['version', '--json'], { encoding: 'utf8' })
    expect(JSON.parse(run)).toMatchObject({ gatehouse: version })
    const licences = readFileSync(join(directory, name, 'THIRD_PARTY_LICENSES'), 'utf8')
    for (const text of ['react 19', 'mediabunny', 'Mozilla Public License', 'SIL OPEN FONT LICENSE', 'JavaScriptCore'])
      expect(licences).toContain(text)
    const unlisted = bom.components.filter(({ name }) => !/^(@napi-rs\/canvas|@oven\/bun)-/.test(name))
    for (const one of unlisted) expect(licences).toContain(`${one.name} ${one.version} (`)
  })

  it('has the chart with its alerts and dashboards, not links to them', () => {
    const list = execFileSync('tar', ['-tvzf', join(OUT, `gatehouse-chart-${version}.tgz`)], { encoding: 'utf8' })
    expect(list).toContain('gatehouse/files/grafana/overview.json')
    expect(list).not.toContain('->')
  })
})
