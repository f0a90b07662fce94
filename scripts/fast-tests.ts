/**
 * `npm run test:fast`: every test file but the slow ones, several processes at a time. With `--table` it runs all files one by one
 * and prints what each of them takes, to keep SLOW_TESTS up to date.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')

/**
 * Files that `npm run test:fast` leaves out, with the processor seconds they took (2 cores, 2026-11-22). What belongs
 * here takes 2 s or more, or starts processes and waits for them. test/fast-tests.test.ts keeps the list in order.
 */
export const SLOW_TESTS: Record<string, number> = {
  'packages/ai-sdk/test/package.test.ts': 5, // packs and installs the package
  'packages/sandbox/src/json-schema-sample.test.ts': 4,
  'src/protocols/shared/passthrough/whole.test.ts': 6, // 100,000 bodies
  'src/providers/responses-compat/fixtures.test.ts': 6, // every stream cut at every byte
  'src/store/backup/backup.test.ts': 7,
  'src/store/engines/valkey-connection.test.ts': 4, // waits for a server that does not answer, and for one that restarts
  'src/store/migrate.test.ts': 8, // starts processes
  'src/store/store.test.ts': 4,
  'src/store/tasks/tasks.test.ts': 9,
  'test/batches-kills.test.ts': 60, // kills a gateway that runs batches
  'test/batches-memory.test.ts': 60, // receives and begins a batch of 20 MB
  'test/cell.test.ts': 25, // starts processes on machines of a network, as root
  'test/cli-backup.test.ts': 16, // starts processes
  'test/cli-migrate.test.ts': 4,
  'test/cli-store.test.ts': 7,
  'test/cli-task.test.ts': 8,
  'test/cli.test.ts': 25,
  'test/client-package.test.ts': 4,
  'test/client-traps.test.ts': 7,
  'test/clients-page.test.ts': 2,
  'test/clients-suites.test.ts': 3, // starts processes
  'test/codex.test.ts': 10, // starts the real Codex, where it is installed
  'test/coding-agents.test.ts': 60, // starts the real coding agents, where they are installed
  'test/connections.test.ts': 6,
  'test/console/access.test.ts': 30, // starts Chromium
  'test/console/add-provider.test.ts': 30, // starts Chromium
  'test/console/alerts.test.ts': 8, // starts Chromium
  'test/console/audit.test.ts': 10, // starts Chromium
  'test/console/batches.test.ts': 20, // starts Chromium
  'test/console/cache.test.ts': 10, // starts Chromium
  'test/console/config.test.ts': 12, // starts Chromium
  'test/console/day.test.ts': 15, // starts Chromium
  'test/console/every-page.test.ts': 60, // opens every page of the console in Chromium
  'test/console/first-tasks.test.ts': 10, // starts Chromium
  'test/console/home.test.ts': 10, // starts Chromium
  'test/console/large-store.test.ts': 30, // opens every page over a filled store
  'test/console/live-tail.test.ts': 8, // starts Chromium
  'test/console/manual.test.ts': 12, // starts Chromium
  'test/console/mcp-guards.test.ts': 20, // starts Chromium
  'test/console/models.test.ts': 15, // starts Chromium
  'test/console/payload-pages.test.ts': 25, // starts Chromium
  'test/console/playground-families.test.ts': 45, // starts Chromium
  'test/console/playground-stored.test.ts': 8, // starts Chromium
  'test/console/playground.test.ts': 24, // starts Chromium
  'test/console/providers.test.ts': 12, // starts Chromium
  'test/console/request-payloads.test.ts': 40, // starts Chromium
  'test/console/requests.test.ts': 62, // starts Chromium
  'test/console/roles.test.ts': 60, // opens every page with acts as every role
  'test/console/routing.test.ts': 6, // starts Chromium
  'test/console/settings.test.ts': 14, // starts Chromium
  'test/console/shell.test.ts': 9, // starts Chromium
  'test/console/tasks.test.ts': 36, // starts Chromium
  'test/console/usage.test.ts': 25, // starts Chromium
  'test/console/webhooks.test.ts': 8, // starts Chromium
  'test/crash-3d.test.ts': 30,
  'test/crash-orders.test.ts': 13,
  'test/crash-resume.test.ts': 50,
  'test/crash.test.ts': 135,
  'test/cut-off.test.ts': 20,
  'test/deep-json.test.ts': 27,
  'test/deploy/helm.test.ts': 5, // where helm is installed
  'test/drain.test.ts': 8, // starts processes and stops them
  'test/durability.test.ts': 4, // starts processes and kills them
  'test/embeddings.test.ts': 7,
  'test/executable.test.ts': 60, // builds, packs and installs the executable
  'test/family-bounds.test.ts': 3,
  'test/fold.test.ts': 6,
  'test/hostile-bodies.test.ts': 4,
  'test/limited-token.test.ts': 4,
  'test/listen.test.ts': 11,
  'test/matrix.test.ts': 25,
  'test/mcp-agents.test.ts': 40, // starts real coding agents, where they are installed
  'test/mcp-conformance.test.ts': 28, // starts programs, where they are installed
  'test/mcp-transports.test.ts': 15, // starts programs
  'test/narrow-token.test.ts': 7,
  'test/order-faults.test.ts': 4,
  'test/order-kills.test.ts': 5,
  'test/order-lookup.test.ts': 3,
  'test/passthrough-dialects.test.ts': 13,
  'test/passthrough.test.ts': 8,
  'test/pgvector-cache.test.ts': 8, // starts PostgreSQL twice, once as WebAssembly
  'test/property.test.ts': 9,
  'test/proposed-config.test.ts': 3, // starts threads
  'test/python-sdks.test.ts': 30, // runs pytest, where the Python clients are installed
  'test/release.test.ts': 90, // builds the files of a release twice
  'test/response-headers.test.ts': 3,
  'test/responses-background.test.ts': 3,
  'test/responses-crash.test.ts': 7,
  'test/rivalry.test.ts': 54,
  'test/rolling-restart.test.ts': 40, // restarts gateways behind nginx, where it is installed
  'test/rolling-upgrade.test.ts': 60, // upgrades three gateways behind nginx, and rolls them back
  'test/sandbox-3d.test.ts': 5,
  'test/sandbox-video.test.ts': 12,
  'test/sdk-answers.test.ts': 2,
  'test/sdk-anthropic.test.ts': 2,
  'test/sdk-google-genai-media.test.ts': 9, // draws videos
  'test/sdk-openai-videos.test.ts': 5,
  'test/sdk-openai.test.ts': 7,
  'test/secret-rotation.test.ts': 4, // starts processes
  'test/secrets-kept.test.ts': 5,
  'test/secrets.test.ts': 3,
  'test/tasks-property.test.ts': 9,
  'test/tasks-resume.test.ts': 3,
  'test/tasks-steps.test.ts': 4,
  'test/translation-property.test.ts': 4,
  'test/upgrade-under-load.test.ts': 25, // starts older builds
  'test/vendor-charges.test.ts': 6, // every way a call can end, in every family
  'test/vendors-ai-sdk-chat.test.ts': 4,
  'test/vendors-embeddings.test.ts': 5,
  'test/vendors-images-ai-sdk.test.ts': 4,
  'test/vendors-rerank.test.ts': 7,
  'test/webhooks.test.ts': 2,
  'test/workers.test.ts': 30, // starts processes, kills and replaces them
}

/** Files in one process: enough that they share what they import, few enough that no process is left with all the work. */
const FILES_A_PROCESS = 60
const MAX_PROCESSES = 4

/** All test files, by their path from the root. */
export function allTests(): string[] {
  const glob = new Bun.Glob('{bench,packages,src,test}/**/*.test.ts')
  return [...glob.scanSync(ROOT)].filter((path) => !path.includes('node_modules/')).sort()
}

export const fastTests = (): string[] => allTests().filter((path) => !Object.hasOwn(SLOW_TESTS, path))

/** What one process runs. Tests of PostgreSQL stay together, and begin first: each process starts its own server. */
export async function groupsOf(files: string[]): Promise<string[][]> {
  const texts = await Promise.all(files.map((path) => Bun.file(join(ROOT, path)).text()))
  const usesPostgres = (index: number) => /kit\/(engines|postgres)\.ts'/.test(texts[index] ?? '')
  const others = files.filter((_, index) => !usesPostgres(index))
  const count = Math.ceil(others.length / FILES_A_PROCESS)
  return [
    files.filter((_, index) => usesPostgres(index)),
    // Neighbours in the list are alike, and so are their times: each group gets some of all kinds.
    ...Array.from({ length: count }, (_, group) => others.filter((_, index) => index % count === group)),
  ]
}

type Run = { text: string; failed: boolean; wall_seconds: number; cpu_seconds: number }

async function run(files: string[]): Promise<Run> {
  const start = performance.now()
  // "./" names a file; without it a path would be a filter for every path that contains it.
  const paths = files.map((path) => `./${path}`)
  const child = Bun.spawn([process.execPath, 'test', '--timeout', '120000', ...paths], {
    cwd: ROOT,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  const cpu = child.resourceUsage()?.cpuTime.total ?? 0
  const wall_seconds = (performance.now() - start) / 1000
  return { text: out + errors, failed: code !== 0, wall_seconds, cpu_seconds: Number(cpu) / 1e6 }
}

const seconds = (value: number): string => value.toFixed(1).padStart(7)

async function runFast(): Promise<boolean> {
  const start = performance.now()
  const groups = await groupsOf(fastTests())
  const totals = { pass: 0, fail: 0, cpu: 0, failed: false }
  const work = async () => {
    for (let files = groups.shift(); files; files = groups.shift()) {
      const { text, failed, cpu_seconds } = await run(files)
      const count = (what: string) => Number(new RegExp(`^ *(\\d+) ${what}$`, 'm').exec(text)?.[1] ?? 0)
      totals.pass += count('pass')
      totals.fail += count('fail')
      totals.cpu += cpu_seconds
      totals.failed ||= failed
      if (failed) process.stderr.write(text.replaceAll(/^\(pass\).*\n/gm, ''))
    }
  }
  const processes = Math.min(MAX_PROCESSES, Math.max(2, availableParallelism()))
  await Promise.all(Array.from({ length: processes }, work))
  const wall = (performance.now() - start) / 1000
  const times = `${wall.toFixed(1)} s (${totals.cpu.toFixed(1)} s of processor time)`
  process.stdout.write(`${totals.pass} pass, ${totals.fail} fail in ${times}\n`)
  return !totals.failed
}

async function printTable(): Promise<boolean> {
  const rows: { path: string; wall_seconds: number; cpu_seconds: number; failed: boolean }[] = []
  for (const path of allTests()) rows.push({ path, ...(await run([path])) })
  rows.sort((a, b) => b.cpu_seconds - a.cpu_seconds)
  process.stdout.write('    cpu    wall  file\n')
  for (const { path, wall_seconds, cpu_seconds, failed } of rows) {
    const notes = [...(Object.hasOwn(SLOW_TESTS, path) ? ['slow'] : []), ...(failed ? ['FAILED'] : [])]
    process.stdout.write(`${seconds(cpu_seconds)} ${seconds(wall_seconds)}  ${[path, ...notes].join('  ')}\n`)
  }
  return rows.every(({ failed }) => !failed)
}

if (import.meta.main) process.exit((await (process.argv.includes('--table') ? printTable() : runFast())) ? 0 : 1)
