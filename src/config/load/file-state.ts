/** The state of the configuration file without parsing it: its text, and whether it may be half-written. */
import { realpathSync, statSync } from 'node:fs'
import { readUtf8File } from './load.ts'

export type FileState = {
  /** Undefined when there is no file; an unreadable one counts as empty, and loading it reports the reason. */
  text: string | undefined
  /** Differs whenever the file, or the file behind its links, may differ. */
  mark: string
  /** Identifies the file behind all links, independent of its content. */
  identity: string
  real_path: string
  /** The inode changed after its last write, as after a rename and unlike after a write. */
  is_renamed: boolean
  /** Returns the text, or throws the error of reading it, for the loader. */
  read(): string | undefined
}

export function fileState(path: string): FileState {
  const before = factsOf(path)
  try {
    const text = readUtf8File(path)
    const after = factsOf(path)
    // Written while it was read: not a consistent state, and never equal to the next one.
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

/** Whether the file was replaced in one step: by a rename, or by a link with a new target. */
export const isReplaced = (before: FileState, now: FileState): boolean =>
  now.identity !== before.identity && (now.is_renamed || now.real_path !== before.real_path)

/** White space, comments and document marks only. */
export const isBlank = (text: string): boolean =>
  text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .every((line) => /^\s*(#.*|---\s*(#.*)?|\.\.\.\s*(#.*)?)?$/.test(line)) // a YAML line without content

type Facts = Pick<FileState, 'mark' | 'identity' | 'real_path' | 'is_renamed'>

export function factsOf(path: string): Facts {
  try {
    const { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return {
      mark: [dev, ino, size, mtimeNs, ctimeNs].join(' '),
      identity: `${dev} ${ino} ${birthtimeNs}`, // the system reuses a free inode number
      real_path: realpathSync(path),
      is_renamed: mtimeNs < ctimeNs,
    }
  } catch {
    return { mark: 'none', identity: 'none', real_path: path, is_renamed: false }
  }
}
