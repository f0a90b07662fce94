/** The packages that an installation without development tools has, by package-lock.json. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './program.ts'

type Entry = {
  name?: string
  version?: string
  license?: string
  integrity?: string
  dev?: boolean
  optional?: boolean
  link?: boolean
  os?: string[]
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}
export type LockedPackage = {
  /** From the root: `node_modules/a/node_modules/b`. */
  path: string
  name: string
  version: string
  license: string
  integrity: string | undefined
  isOptional: boolean
  /** Set for a package of one system. */
  isOfSystem: boolean
  /** The paths of what it depends on. */
  dependencies: string[]
}
export type Locked = { name: string; version: string; dependencies: string[]; packages: LockedPackage[] }

const MODULES = 'node_modules/'

export function readLocked(root = ROOT): Locked {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Entry>
  }
  const isShipped = (path: string) => path.includes(MODULES) && !packages[path]?.link && !packages[path]?.dev
  const dependenciesOf = (path: string) => {
    const { dependencies, optionalDependencies, peerDependencies } = packages[path] ?? {}
    return Object.keys({ ...peerDependencies, ...dependencies, ...optionalDependencies })
      .map((name) => resolve(path, name))
      .filter((found) => found !== undefined && isShipped(found)) as string[]
  }
  /** As Node.js looks for a package: beside the one that needs it, then further up. */
  function resolve(from: string, name: string): string | undefined {
    for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf(`/${MODULES}`)))) {
      const path = `${base}${base === '' ? '' : '/'}${MODULES}${name}`
      if (packages[path]) return path
      if (base === '') return undefined
      if (!base.includes(`/${MODULES}`)) base = ''
    }
  }
  const root_ = packages[''] as Entry
  const workspaces = Object.keys(packages).filter((path) => path !== '' && !path.includes(MODULES))
  return {
    name: root_.name ?? '',
    version: root_.version ?? '',
    dependencies: [...new Set(['', ...workspaces].flatMap(dependenciesOf))].sort(),
    packages: Object.keys(packages)
      .filter(isShipped)
      .map((path) => {
        const { name, version, license, integrity, optional, os } = packages[path] as Entry
        return {
          path,
          name: name ?? path.slice(path.lastIndexOf(MODULES) + MODULES.length),
          version: version ?? '',
          license: license ?? 'unknown',
          integrity,
          isOptional: optional === true,
          isOfSystem: os !== undefined,
          dependencies: dependenciesOf(path),
        }
      }),
  }
}
