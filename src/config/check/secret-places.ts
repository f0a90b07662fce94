/** Decides where a configuration may take a secret from a file. */
import { isMarked } from '../schema/schema-at.ts'

type Path = readonly (string | number)[]

/** A file that a setting names, as it is written there, and the path of the setting that gets its content. */
export type SecretFile = { path: Path; file: string }

/** Where a text of the configuration comes from: the file on disk, or a request of the admin API. */
export type ConfigOrigin =
  | { from: 'disk' }
  /** `present`: the secret files that the configuration file on disk names, each with its place. */
  | { from: 'api'; present: readonly SecretFile[] }

/**
 * Why the content of a file may not be put there; undefined: it may. Every `${file:...}` and `key_file` is decided here.
 * Who may send a configuration to the admin API must not read files of the host by it, nor have them sent elsewhere: only
 * those count that the file on disk already names, for the same provider or in the same setting.
 */
export function secretFileProblem({ path, file }: SecretFile, origin: ConfigOrigin): string | undefined {
  if (!isMarked('secret', path)) return 'a file may stand only where a secret does, such as in a key or a header'
  if (origin.from === 'disk' || origin.present.some((one) => one.file === file && isSameUse(one.path, path)))
    return undefined
  return 'the configuration file on disk does not name it here, and the admin API reads no other files'
}

/** What one provider has in a key, it may have in a header: both go to the same address. */
function isSameUse(one: Path, other: Path): boolean {
  const steps = one[0] === 'providers' ? 2 : Math.max(one.length, other.length)
  return one.slice(0, steps).join('\n') === other.slice(0, steps).join('\n')
}
