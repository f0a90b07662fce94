/** Where the files of a release come from: an in-toto statement with a SLSA predicate. It is not signed. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from './program.ts'

type Release = { version: string; targets: string[]; files: string[]; commit: string; repository: string | undefined }

export const sha256 = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

export function provenance({ version, targets, files, commit, repository }: Release): object {
  const source = repository ? { uri: `git+${repository}` } : { name: 'gatehouse' }
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map((file) => ({ name: basename(file), digest: { sha256: sha256(file) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://gatehouse.invalid/release/v1',
        externalParameters: { command: ['npm', 'run', 'release', '--', version, ...targets] },
        internalParameters: {
          bun: Bun.version,
          node: process.versions.node,
          system: `${process.platform}-${process.arch}`,
        },
        resolvedDependencies: [
          { ...source, digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: { sha256: sha256(join(ROOT, 'package-lock.json')) } },
        ],
      },
      // Whoever ran the command, on a machine that nobody vouches for.
      runDetails: { builder: { id: 'https://gatehouse.invalid/builder/unsigned' } },
    },
  }
}
