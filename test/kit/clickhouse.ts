/** Engines of ClickHouse for the tests, where they are installed: its server from Debian, and chDB from PyPI behind its HTTP interface. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

type Running = { url: string; username?: string; password?: string; stop(): Promise<void> }
export type ClickHouseEngine = {
  name: string
  /** Whether it knows all that the gateway writes into its table: indexes to skip by, an end of rows. */
  isCurrent: boolean
  start(): Promise<Running>
}

/** Debian 12 has version 18.16: `apt-get install clickhouse-server`. */
const SERVER = Bun.which('clickhouse-server', { PATH: `${process.env.PATH ?? ''}:/usr/sbin` })
/** A Python with chDB, as `npm run test:clickhouse` installs it. */
const PYTHON = process.env.GATEHOUSE_TEST_CHDB ?? 'python3'
const hasChdb = Bun.spawnSync([PYTHON, '-c', 'import chdb'], { stdout: 'ignore', stderr: 'ignore' }).exitCode === 0
if (SERVER === null && !hasChdb)
  process.stderr.write('Tests of ClickHouse are skipped: neither it nor chDB is installed.\n')

function directoryFor(name: string) {
  const directory = mkdtempSync(join(tmpdir(), `gatehouse-${name}-`))
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

async function startServer(): Promise<Running> {
  const { directory, remove } = directoryFor('clickhouse')
  chmodSync(directory, 0o755)
  const [port, tcp] = [await freePort(), await freePort()]
  for (const name of ['data', 'tmp']) mkdirSync(join(directory, name))
  const [username, password] = ['gatehouse', `p'w\\"${crypto.randomUUID()}`]
  const quota =
    '<default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default>'
  writeFileSync(
    join(directory, 'users.xml'),
    `<yandex><profiles><default/></profiles><quotas>${quota}</quotas><users><gatehouse>
      <password_sha256_hex>${new Bun.CryptoHasher('sha256').update(password).digest('hex')}</password_sha256_hex>
      <networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></gatehouse></users></yandex>`,
  )
  writeFileSync(
    join(directory, 'config.xml'),
    `<yandex><logger><console>0</console><level>none</level></logger><http_port>${port}</http_port><tcp_port>${tcp}</tcp_port>
      <listen_host>127.0.0.1</listen_host><path>${directory}/data/</path><tmp_path>${directory}/tmp/</tmp_path>
      <users_config>${directory}/users.xml</users_config><default_profile>default</default_profile>
      <default_database>default</default_database><mark_cache_size>5368709</mark_cache_size></yandex>`,
  )
  const child = Bun.spawn([SERVER ?? '', `--config-file=${directory}/config.xml`], {
    cwd: directory,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const url = `http://127.0.0.1:${port}/`
  const isUp = () =>
    fetch(url, { keepalive: false }).then(
      (response) => response.ok,
      () => false,
    )
  while (!(await isUp())) {
    if (child.exitCode !== null) throw new Error(`clickhouse-server ended: ${await new Response(child.stderr).text()}`)
  }
  return {
    url,
    username,
    password,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
      remove()
    },
  }
}

async function startChdb(): Promise<Running> {
  const { directory, remove } = directoryFor('chdb')
  const script = join(import.meta.dir, 'chdb-server.py')
  const child = Bun.spawn([PYTHON, script, directory], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const reader = child.stdout.getReader()
  const { value } = await reader.read()
  return {
    url: `http://127.0.0.1:${Number(new TextDecoder().decode(value))}/`,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
      remove()
    },
  }
}

export const CLICKHOUSE_ENGINES: ClickHouseEngine[] = [
  ...(SERVER === null ? [] : [{ name: 'the server of Debian', isCurrent: false, start: startServer }]),
  ...(hasChdb ? [{ name: 'chDB', isCurrent: true, start: startChdb }] : []),
]
