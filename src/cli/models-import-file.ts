/** Puts a new text in a file's place in one step, so that whoever reads it sees the old one or the new one. */
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readTextFile } from '../config/load.ts'

type ReplaceParts = {
  path: string
  /** What the file held when it was read; undefined where there was none. */
  before: string | undefined
  text: string
}

/** Mode and owner stay, and a link stays a link. Throws if the file is no longer what it was, or cannot be written. */
export function replaceFile({ path, before, text }: ReplaceParts): void {
  const target = before === undefined ? path : realpathSync(path)
  const old = before === undefined ? undefined : statSync(target)
  const draft = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`)
  const file = openSync(draft, 'wx', old ? 0o600 : 0o644)
  try {
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (old) {
      const made = statSync(draft)
      if (made.uid !== old.uid || made.gid !== old.gid) chownSync(draft, old.uid, old.gid)
      chmodSync(draft, old.mode & 0o7777)
    }
    if (readTextFile(target) !== before)
      throw new Error('it was changed by somebody else meanwhile; run the import again')
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
