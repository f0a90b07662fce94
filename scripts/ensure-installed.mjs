/** Runs `npm ci` before `npm start` and `npm test`, but only when something is missing; plain Node, nothing imported. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const stampFile = join(root, 'node_modules', '.gatehouse-installed')
// There from the begin to the end of an installation: of one that was interrupted, what it would have removed is left.
const beginFile = join(root, 'dist', '.installing')
const IS_FRESH = 'root=$0; . "$root/scripts/find-executable.sh"; [ -n "$executable" ]'
const withDev = process.argv.includes('--with-dev')

const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
const lockText = read(join(root, 'package-lock.json'))

// Installed as a dependency of something else: there is no lock file, and npm has seen to everything.
if (lockText !== undefined && !isInstalled(lockText)) install(lockText)

function isInstalled(lock) {
  const stamp = read(stampFile)
  const hash = hashOf(lock)
  if (stamp === `${hash} all\n` || (stamp === `${hash} production\n` && !withDev)) return true
  // A source that is newer than the executable needs the packages again.
  if (stamp === `${hash} executable\n`) return !withDev && spawnSync('sh', ['-euc', IS_FRESH, root]).status === 0
  // No stamp: npm was run by hand. What it says it has installed is held against the lock file.
  const installed = read(join(root, 'node_modules', '.package-lock.json'))
  if (installed === undefined) return false
  const have = JSON.parse(installed).packages
  const mayLackDev = !withDev && !existsSync(beginFile)
  const isThere = ([path, wanted]) =>
    path === '' || wanted.optional || (wanted.dev && mayLackDev) || have[path]?.version === wanted.version
  if (!Object.entries(JSON.parse(lock).packages).every(isThere)) return false
  stampAs(hash)
  return true
}

function install(lock) {
  const omit = withDev ? '--include=dev' : '--omit=dev'
  process.stderr.write(`gatehouse: installing what is missing (npm ci ${omit}); this happens once ...\n`)
  const started = Date.now()
  mkdirSync(dirname(beginFile), { recursive: true })
  writeFileSync(beginFile, '')
  // The npm that runs this script, where there is one; else the one on the PATH.
  const npm = process.env.npm_execpath?.endsWith('.js') ? [process.execPath, process.env.npm_execpath] : ['npm']
  const [command, ...first] = npm
  const { status, error } = spawnSync(
    command,
    [...first, 'ci', omit, '--no-audit', '--no-fund', '--loglevel=error', '--silent=false'],
    { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
  )
  if (status !== 0) {
    process.stderr.write(`gatehouse: npm ci failed${error ? `: ${error.message}` : ''}; run it by hand to see why.\n`)
    process.exit(1)
  }
  stampAs(hashOf(lock), !withDev && leaveExecutable(started) ? 'executable' : undefined)
  process.stderr.write(`gatehouse: installed in ${((Date.now() - started) / 1000).toFixed(1)} s\n`)
}

/** Whether the installation made an executable, which holds all that a start needs: the packages are then removed. */
function leaveExecutable(started) {
  const made = statSync(join(root, 'dist/gatehouse'), { throwIfNoEntry: false })
  if (!made || made.mtimeMs < started) return false
  // A build that was killed leaves a directory with its number.
  const unfinished = readdirSync(join(root, 'dist')).filter((name) => /^\.\d+$/.test(name))
  for (const name of ['node_modules', 'dist/console', ...unfinished.map((name) => `dist/${name}`)])
    rmSync(join(root, name), { recursive: true, force: true })
  mkdirSync(join(root, 'node_modules'))
  return true
}

function stampAs(hash, kind = withDev ? 'all' : 'production') {
  writeFileSync(stampFile, `${hash} ${kind}\n`)
  rmSync(beginFile, { force: true })
}

function hashOf(text) {
  return createHash('sha256').update(text).digest('hex')
}
