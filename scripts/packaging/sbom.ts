/** The bill of materials of a release in CycloneDX 1.6, from package-lock.json. */
import { createHash } from 'node:crypto'
import { type LockedPackage, readLocked } from './locked-packages.ts'

/** `timestamp`: of the commit, so that two releases of one commit are equal. */
export function billOfMaterials({ version, timestamp }: { version: string; timestamp: string }): object {
  const { name, dependencies, packages } = readLocked()
  const main = purlOf(name, version)
  /** A version that is installed at several places is one component. */
  const byPurl = new Map<string, LockedPackage[]>()
  const purlAt = new Map<string, string>()
  for (const one of packages) {
    const purl = purlOf(one.name, one.version)
    purlAt.set(one.path, purl)
    byPurl.set(purl, [...(byPurl.get(purl) ?? []), one])
  }
  const purls = (paths: string[]) => [...new Set(paths.map((path) => purlAt.get(path) as string))].sort()
  const sorted = [...byPurl].sort(([one], [other]) => (one < other ? -1 : 1))
  const content = {
    metadata: {
      timestamp,
      component: {
        'bom-ref': main,
        type: 'application',
        name,
        version,
        purl: main,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components: sorted.map(([purl, places]) => componentOf(purl, places)),
    dependencies: [
      { ref: main, dependsOn: purls(dependencies) },
      ...sorted.map(([ref, places]) => ({ ref, dependsOn: purls(places.flatMap((place) => place.dependencies)) })),
    ],
  }
  return { bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber: serialOf(content), version: 1, ...content }
}

function componentOf(purl: string, places: LockedPackage[]) {
  const [{ name, version, license, integrity }] = places as [LockedPackage]
  return {
    'bom-ref': purl,
    type: 'library',
    name,
    version,
    scope: places.every(({ isOptional }) => isOptional) ? 'optional' : 'required',
    ...(integrity && { hashes: [hashOf(integrity)] }),
    licenses: [/ (OR|AND) /.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
  }
}

const purlOf = (name: string, version: string) => `pkg:npm/${name.replace(/^@/, '%40')}@${version}`

/** npm writes `sha512-` and base64. */
function hashOf(integrity: string) {
  const [algorithm = '', digest = ''] = integrity.split('-')
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }
}

/** A UUID (version 8) of the content: the same for the same release. */
function serialOf(content: object): string {
  const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex')
  const parts = [digest.slice(0, 8), digest.slice(8, 12), `8${digest.slice(13, 16)}`, `a${digest.slice(17, 20)}`]
  return `urn:uuid:${[...parts, digest.slice(20, 32)].join('-')}`
}
