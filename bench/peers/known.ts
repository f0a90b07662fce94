/** The peers that can be installed from a registry, each with what its manual recommends for production. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { plainEnvironment } from '../processes.ts'
import { VENDOR_KEY } from '../subjects.ts'
import type { PeerFile } from './peer.ts'

const BENCH = resolve(import.meta.dir, '..')
const ROOT = resolve(BENCH, '..')
/** Not secrets: they open nothing but what the benchmark itself starts. */
const TOKEN = `sk-${'benchmark0'.repeat(5).slice(0, 48)}`
const LITELLM_KEY = 'sk-benchmark-of-a-gateway-on-loopback-0000'
const LITELLM = '1.106.2'
const MODELS = ['whole', 'stream', 'single', 'slow']
const at = (port: string) => `http://127.0.0.1:${port}/v1`

export type Found = { nginx?: string | undefined; portkey?: string | undefined; node?: string | undefined }

export function knownPeers({ nginx, portkey, node }: Found, litellm: string | undefined): PeerFile[] {
  const peers = [bareBun(), gatehouse()]
  if (nginx) peers.unshift(bareNginx(nginx))
  if (portkey && node) peers.push(portkeyOn(node, portkey))
  if (litellm) peers.push(litellmWith(litellm, 'uvicorn'), litellmWith(litellm, 'granian'))
  return peers
}

/** Forwards and does nothing else. */
function bareNginx(binary: string): PeerFile {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const server = (port: string, vendor: string) => `
  upstream to_${vendor} { server 127.0.0.1:{${vendor}}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:{${port}} backlog=4096;
    location / { proxy_pass http://to_${vendor}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }`
  const conf = `daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
  access_log off; proxy_buffering off;
  keepalive_requests 1000000000;
  ${temporary.map((name) => `${name}_temp_path {dir}/${name};`).join(' ')}
  ${server('port', 'vendor')}${server('port2', 'conformance')}
}
`
  return {
    name: 'nginx, bare proxy',
    version: versionOf([binary, '-v']),
    on: 'nothing',
    files: { 'nginx.conf': conf },
    command: [binary, '-c', '{dir}/nginx.conf', '-e', '{dir}/error.log', '-p', '{dir}'],
    url: at('{port}'),
    headers: { authorization: `Bearer ${VENDOR_KEY}` },
    conformance_url: at('{port2}'),
  }
}

function bareBun(): PeerFile {
  return {
    name: 'bare Bun proxy',
    version: Bun.version,
    on: 'JSON parsed and written, fetch',
    command: [process.execPath, join(BENCH, 'bare-proxy.ts')],
    env: { PORT: '{port}', VENDOR_PORT: '{vendor}', CASES_PORT: '{conformance}', VENDOR_KEY },
    url: at('{port}'),
  }
}

/** With all that a team would use: a token with limits and a budget, prices, the ledger, metrics, request log, access log. */
function gatehouse(): PeerFile {
  const price = 'prices: { input: 1, output: 2 }'
  const models = [
    ...MODELS.map((name) => `  ${name}: { ${price}, targets: [{ provider: vendor, model: ${name} }] }`),
    `  conformance: { ${price}, targets: [{ provider: cases, model: m }], routing: { tries: 1 } }`,
  ]
  return {
    name: 'Gatehouse',
    version: versionOf([join(ROOT, 'bin/gatehouse'), 'version']),
    on: 'token, validation, limits, prices, ledger, metrics, request log, access log',
    files: {
      'gatehouse.yaml': `providers:
  vendor: { kind: chatcompat, base_url: "${at('{vendor}')}", key: "\${BENCH_VENDOR_KEY}" }
  cases: { kind: chatcompat, base_url: "${at('{conformance}')}", key: "\${BENCH_VENDOR_KEY}" }
tokens:
  rate_limits: { requests_per_minute: 100000000, tokens_per_minute: 100000000000 }
  budgets: [{ amount: 1000000, window: month }]
models:
${models.join('\n')}
`,
    },
    command: [join(ROOT, 'bin/gatehouse'), 'serve', '--config', '{dir}/gatehouse.yaml', '--port', '{port}'],
    env: { GATEHOUSE_DATA_DIR: '{dir}/data', GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN, BENCH_VENDOR_KEY: VENDOR_KEY },
    url: at('{port}'),
    headers: { authorization: `Bearer ${TOKEN}` },
  }
}

function portkeyOn(node: string, script: string): PeerFile {
  const host = (port: string) => ({ 'x-portkey-custom-host': at(port) })
  return {
    name: 'Portkey',
    version: versionOf([node, '-p', `require(${JSON.stringify(join(script, '../../package.json'))}).version`]),
    on: 'no token, no metering, no log',
    command: [node, script, '--headless', '--port={port}'],
    env: { NODE_ENV: 'production' },
    url: at('{port}'),
    headers: { authorization: `Bearer ${VENDOR_KEY}`, 'x-portkey-provider': 'openai', ...host('{vendor}') },
    conformance_headers: host('{conformance}'),
  }
}

/** One worker, as all others here have one core. */
function litellmWith(binary: string, server: 'uvicorn' | 'granian'): PeerFile {
  const model = (name: string, port: string) =>
    `  - { model_name: ${name}, litellm_params: { model: openai/${name}, api_base: "${at(port)}", api_key: ${VENDOR_KEY} } }`
  const config = `model_list:
${[...MODELS.map((name) => model(name, '{vendor}')), model('conformance', '{conformance}')].join('\n')}
litellm_settings: { telemetry: false, num_retries: 0, request_timeout: 600 }
general_settings: { master_key: ${LITELLM_KEY} }
`
  return {
    name: `LiteLLM (${server})`,
    version: LITELLM,
    on: 'master key, no database',
    files: { 'config.yaml': config },
    command: [
      binary,
      ...['--config', '{dir}/config.yaml', '--host', '127.0.0.1', '--port', '{port}', '--num_workers', '1'],
      ...(server === 'granian' ? ['--run_granian'] : []),
    ],
    env: { LITELLM_MODE: 'PRODUCTION', LITELLM_LOG: 'ERROR' },
    url: at('{port}'),
    headers: { authorization: `Bearer ${LITELLM_KEY}` },
    start_seconds: 180,
  }
}

/** Its command in an environment of its own, which is made at the first run (900 MB). Undefined: it cannot be installed. */
export async function installLitellm(progress: (text: string) => void): Promise<string | undefined> {
  const home = join(BENCH, '.litellm')
  const binary = join(home, 'bin/litellm')
  if (existsSync(binary)) return binary
  progress('installing LiteLLM into bench/.litellm (pip, some minutes)')
  const steps = [
    ['python3', '-m', 'venv', home],
    [join(home, 'bin/pip'), 'install', '--quiet', `litellm[proxy]==${LITELLM}`, 'granian==2.8.7'],
  ]
  for (const command of steps) {
    const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'ignore' })
    if ((await child.exited) !== 0) return undefined
  }
  return existsSync(binary) ? binary : undefined
}

function versionOf(command: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(command, { env: plainEnvironment() })
  return /\d+\.\d+(\.\d+)*/.exec(`${stdout}${stderr}`)?.[0] ?? 'unknown'
}
