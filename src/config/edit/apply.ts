/** Writes the configuration file in one step, and keeps what it was. */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, readFile, realpath, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Appended to the name of the file: the backup of what was there before. */
const BACKUP_SUFFIX = '.bak'

type Written = {
  /** The file behind all links. */
  file: string
  /** What was there before; undefined: nothing. */
  backup: string | undefined
}

/**
 * Replaces the text of the file: the old one or the new one is there at any time, whatever happens. A link stays a link.
 * Throws an Error that says why the file is not the gateway's to write.
 */
export async function writeConfigFile(path: string, text: string): Promise<Written> {
  const file = await realpath(path).catch(() => path)
  try {
    const before = await readFile(file, 'utf8').catch(ifMissing)
    const mode = await stat(file).then(({ mode }) => mode & 0o777, ifMissing)
    const backup = before === undefined ? undefined : `${file}${BACKUP_SUFFIX}`
    if (backup !== undefined && before !== undefined) await replace(backup, before, mode)
    await replace(file, text, mode)
    return { file, backup }
  } catch (error) {
    throw new Error(`${file} is not the gateway's to write: ${reasonOf(error, file)}`, { cause: error })
  }
}

/** It may hold secrets: nobody else reads a new one. */
const NEW_FILE_MODE = 0o600

async function replace(file: string, text: string, mode = NEW_FILE_MODE): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file)}.${randomUUID()}`)
  let handle: FileHandle | undefined
  try {
    handle = await open(temporary, 'wx', mode)
    await handle.chmod(mode) // whatever the umask is
    await handle.writeFile(text)
    await handle.sync()
    await handle.close()
    await rename(temporary, file)
  } catch (error) {
    await handle?.close().catch(() => {})
    await unlink(temporary).catch(() => {})
    throw error
  }
  const directory = await open(dirname(file), 'r')
  await directory.sync().finally(() => directory.close())
}

function ifMissing(error: { code?: string }): undefined {
  if (error.code !== 'ENOENT') throw error
}

function reasonOf(error: unknown, file: string): string {
  const { code, message } = error as { code?: string; message: string }
  switch (code) {
    case 'EROFS':
      return 'its file system is read-only, as that of a mounted ConfigMap is; change it where it comes from'
    case 'EACCES':
    case 'EPERM':
      return `the user of the gateway may not write in ${dirname(file)}`
    case 'EBUSY':
      return 'it is mounted as a single file, which cannot be replaced; mount its directory instead'
    case 'ENOENT':
      return `there is no directory ${dirname(file)}`
    case 'ENOSPC':
      return 'the disk is full'
    default:
      return code ?? message
  }
}
