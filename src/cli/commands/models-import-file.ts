/** Replaces a file atomically, so that a reader sees the old text or the new one. */
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
import { readTextFile } from '../../config/load/load.ts'

type ReplaceParts = {
  path: string
  /** The text of the file when it was read; undefined if it did not exist. */
  before: string | undefined
  text: string
}

/** Preserves mode, owner and links. Throws if the file has changed since it was read, or cannot be written. */
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
      const created = statSync(draft)
      if (created.uid !== old.uid || created.gid !== old.gid) chownSync(draft, old.uid, old.gid)
      chmodSync(draft, old.mode & 0o7777)
    }
    if (readTextFile(target) !== before) throw new Error('it changed during the import; run the import again')
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
