/** Finds the files that ship with the gateway and are no code: where they lie in a checkout, or inside of an executable. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { zstdDecompressSync } from 'node:zlib'

/** Set where the program is one file with its runtime: the directory as which the runtime shows what it holds. */
declare const EXECUTABLE_RESOURCES: string

const inside = typeof EXECUTABLE_RESOURCES === 'undefined' ? undefined : EXECUTABLE_RESOURCES
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDERS = { manual: 'docs/manual', console: 'dist/console' }

/** Whether another process of the program is started by a command of its own, not by the path of a script. */
export const IS_EXECUTABLE = inside !== undefined

/** The directory of the manual or of the console. It need not exist. */
export const resourceDirectory = (folder: keyof typeof FOLDERS): string =>
  inside ? join(inside, folder) : join(ROOT, FOLDERS[folder])

/** A file that an executable holds packed, by its base name; undefined in a checkout, which has what it was made of. */
export const readPacked = (name: string): Buffer<ArrayBuffer> | undefined =>
  inside === undefined ? undefined : zstdDecompressSync(readFileSync(join(inside, 'packed', `${name}.zst`)))
