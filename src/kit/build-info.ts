/** Reads from which commit this gateway is built, where it lies in a git repository of its own. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export type Build = {
  /** As git abbreviates it, with `-dirty` where a tracked file was changed. */
  commit: string
  /** The day of the commit in UTC, as `2026-11-24`. */
  date: string
}

/** An executable has this constant in place of the repository: null where it was made without one. */
declare const BUNDLED_BUILD: Build | null

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A command of git that hangs, such as on a network file system, delays a start by no more. */
const GIT_TIMEOUT_MILLISECONDS = 2000

export const thisBuild = async (): Promise<Build | undefined> =>
  typeof BUNDLED_BUILD === 'undefined' ? readBuild(ROOT) : (BUNDLED_BUILD ?? undefined)

/** Undefined where `root` is not the top of a repository: a package inside of another project has not that project's commit. */
export async function readBuild(root: string, timeout = GIT_TIMEOUT_MILLISECONDS): Promise<Build | undefined> {
  if (!existsSync(join(root, '.git'))) return undefined
  try {
    const [head, changes] = await Promise.all([
      git(root, timeout, ['log', '-1', '--format=%h %cd', '--date=format-local:%Y-%m-%d']),
      git(root, timeout, ['status', '--porcelain', '--untracked-files=no']),
    ])
    const [commit, date] = head.trim().split(' ')
    return commit && date ? { commit: changes === '' ? commit : `${commit}-dirty`, date } : undefined
  } catch {
    return undefined
  }
}

async function git(root: string, timeout: number, args: string[]): Promise<string> {
  // A repository that the environment names, as in a hook, is another one.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))
  const { stdout } = await promisify(execFile)('git', ['-C', root, ...args], {
    // Without the lock of the index, which `status` would take from a command of its user.
    env: { ...Object.fromEntries(inherited), TZ: 'UTC', GIT_OPTIONAL_LOCKS: '0' },
    timeout,
  })
  return stdout
}
