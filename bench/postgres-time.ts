/** Processor time of PostgreSQL, read from Linux. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'

const TICKS_A_SECOND = 100

const textOf = (path: string): Promise<string> =>
  Bun.file(path)
    .text()
    .catch(() => '')

/** Of the server and of its processes, also of those that have ended; `title`: of those whose title has this text, while they run. */
export async function secondsOfPostgres(url: string, title = ''): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ setting: string }>(
    `select setting from pg_settings where name = 'data_directory'`,
  )
  await client.end()
  const [server = ''] = readFileSync(join(rows[0]?.setting ?? '', 'postmaster.pid'), 'utf8').split('\n')
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    // After the name, which may hold spaces: state, parent, ..., utime, stime, cutime, cstime.
    const stat = (await textOf(`/proc/${pid}/stat`)).replace(/^.*\) /s, '').split(' ')
    const isServer = pid === server
    if (!isServer && stat[1] !== server) continue
    if (title !== '' && !(await textOf(`/proc/${pid}/cmdline`)).includes(title)) continue
    for (const at of isServer ? [11, 12, 13, 14] : [11, 12]) ticks += Number(stat[at])
  }
  return ticks / TICKS_A_SECOND
}
