/** Whether a process has a file open for writing. Linux only, and only processes that this one may inspect. */
import { readdir, readFile, readlink, realpath } from 'node:fs/promises'

/** O_WRONLY or O_RDWR, in the octal `flags` of /proc/<pid>/fdinfo/<fd>. */
const WRITING = 0o3

/** False also when it cannot be determined. */
export async function isOpenForWriting(path: string, proc = '/proc'): Promise<boolean> {
  const real_path = await realpath(path).catch(() => path)
  const pids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    // Another user's process, or one that has ended.
    const fds = await readdir(`${proc}/${pid}/fd`).catch(() => [])
    for (const fd of fds) {
      const target = await readlink(`${proc}/${pid}/fd/${fd}`).catch(() => '')
      if (target === real_path && (await isWriting(`${proc}/${pid}/fdinfo/${fd}`))) return true
    }
  }
  return false
}

async function isWriting(fdinfo: string): Promise<boolean> {
  const text = await readFile(fdinfo, 'utf8').catch(() => '')
  const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(text) ?? []
  return (Number.parseInt(flags, 8) & WRITING) !== 0
}
