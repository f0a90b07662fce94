/** What can be told of the configuration file without understanding it: its text, and whether it may be half-written. */
import { realpathSync, statSync } from 'node:fs'
import { readTextFile } from './load.ts'

export type FileState = {
  /** Undefined when there is none; what cannot be read counts as empty, and loading it says why. */
  text: string | undefined
  /** Differs whenever the file, or the file behind its links, may differ. */
  mark: string
  /** Of the file behind all links, whatever is written to it. */
  identity: string
  real_path: string
  /** The inode has changed after its last write: that is what a rename does, and what a write does not do. */
  is_renamed: boolean
  /** What reading it again would say, for the loader. */
  read(): string | undefined
}

export function fileState(path: string): FileState {
  const before = factsOf(path)
  try {
    const text = readTextFile(path)
    const after = factsOf(path)
    // Written while it was read: not the state of any moment, and not the same as the next one.
    const mark = before.mark === after.mark ? after.mark : `${before.mark}, then ${after.mark}`
    return { ...after, mark, text, read: () => text }
  } catch (error) {
    return {
      ...before,
      text: '',
      read() {
        throw error
      },
    }
  }
}

/** Put in the place of the other in one step: by a rename, or by a link that leads elsewhere. */
export const isReplaced = (before: FileState, now: FileState): boolean =>
  now.identity !== before.identity && (now.is_renamed || now.real_path !== before.real_path)

/** White space, comments and document marks only. */
export const isBlank = (text: string): boolean =>
  text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .every((line) => /^\s*(#.*|---\s*(#.*)?|\.\.\.\s*(#.*)?)?$/.test(line)) // a line of YAML that says nothing

type Facts = Pick<FileState, 'mark' | 'identity' | 'real_path' | 'is_renamed'>

export function factsOf(path: string): Facts {
  try {
    const { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return {
      mark: [dev, ino, size, mtimeNs, ctimeNs].join(' '),
      identity: `${dev} ${ino} ${birthtimeNs}`, // a number that is free again is given to the next file
      real_path: realpathSync(path),
      is_renamed: mtimeNs < ctimeNs,
    }
  } catch {
    return { mark: 'none', identity: 'none', real_path: path, is_renamed: false }
  }
}
