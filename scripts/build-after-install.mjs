/** Makes the executable that `bin/gatehouse` prefers to the sources. Without one, it starts from the sources: no failure ends an installation. */
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const scripts = dirname(fileURLToPath(import.meta.url))
const command = [join(scripts, 'bun.sh'), join(scripts, 'build.ts')]
const { status, stderr } = spawnSync('sh', command, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' })
if (status !== 0) process.stderr.write(`gatehouse: made no executable, starts from its sources: ${stderr?.trim()}\n`)
