/** Gatehouse as it runs in production, with one model of videos, on the gateway's core. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { GATEWAY_CORE, type Group, LOAD_CORE, startGroup } from '../processes.ts'

const REPOSITORY = resolve(import.meta.dir, '../..')
/** Not secrets: they open nothing but what the benchmark itself starts. */
export const TOKEN = `sk-${'benchmark0'.repeat(5).slice(0, 48)}`
const MODEL = 'acme/film'

export type GatewaySetup = { group: Group; url: string; database: string }
export type Vendor = { group: Group; url: string }

/** Waits for the port that a child says it has. */
async function portOf(group: Group, pattern: RegExp): Promise<string> {
  for (let tries = 0; tries < 400; tries++) {
    const port = pattern.exec(readFileSync(group.log, 'utf8'))?.[1]
    if (port) return port
    await Bun.sleep(25)
  }
  throw new Error(`it did not start: ${readFileSync(group.log, 'utf8').slice(-500)}`)
}

export async function startVendor(dir: string, seconds: [number, number], latency_ms: number): Promise<Vendor> {
  const script = join(import.meta.dir, 'vendor.ts')
  const command = [process.execPath, script, ...seconds.map(String), String(latency_ms)]
  const group = startGroup({ command, core: LOAD_CORE, log: join(dir, `vendor-${Date.now()}.log`) })
  return { group, url: `http://127.0.0.1:${await portOf(group, /"port":(\d+)/)}` }
}

/** `name` is its directory below `dir`: the same again finds the same database. */
export async function startTestGateway(
  dir: string,
  name: string,
  options: { vendor: string; concurrency: number },
): Promise<GatewaySetup> {
  const home = join(dir, name)
  mkdirSync(home, { recursive: true })
  const config = join(home, 'gatehouse.yaml')
  writeFileSync(
    config,
    `sandbox: false
tasks: { hands: ${options.concurrency} }
providers:
  acme: { kind: chatcompat-video, base_url: "${options.vendor}/v1", key: bench-vendor-key, options: { idempotent: true } }
models:
  ${MODEL}: { families: [video-generation] }
`,
  )
  const group = startGroup({
    command: [
      join(REPOSITORY, 'bin/gatehouse'),
      'serve',
      '--json',
      '--port',
      '0',
      '--config',
      config,
      '--data-dir',
      home,
    ],
    core: GATEWAY_CORE,
    log: join(home, `${Date.now()}.log`),
    env: { GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN, GATEHOUSE_LOG: 'warn' },
  })
  const port = await portOf(group, /"url":"http:\/\/127\.0\.0\.1:(\d+)"/)
  return { group, url: `http://127.0.0.1:${port}`, database: join(home, 'gatehouse.db') }
}

const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }

export async function submit({ url }: GatewaySetup, index: number): Promise<string> {
  const body = JSON.stringify({ model: MODEL, prompt: `Film ${index}`, duration: 4 })
  const answer = await fetch(`${url}/v1/video/generations`, { method: 'POST', headers, body })
  if (answer.status !== 200) throw new Error(`an order was answered ${answer.status}: ${await answer.text()}`)
  const { data } = (await answer.json()) as { data: { task_id: string } }
  return data.task_id
}

export async function get({ url }: GatewaySetup, path: string): Promise<void> {
  const answer = await fetch(`${url}${path}`, { headers })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${text}`)
}
