/** Starts each measured subject as its documentation says: the provider itself, nginx, a bare Bun proxy, Gatehouse and Portkey. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Tools } from './find-tools.ts'
import type { Target } from './http-client.ts'
import { GATEWAY_CORE, type Group, LOAD_CORE, startGroup } from './processes.ts'

export const SUBJECTS = ['direct', 'nginx', 'bun', 'gatehouse', 'portkey'] as const
export type SubjectName = (typeof SUBJECTS)[number]
/** The vendor's kinds of answer: a whole one, a stream at once, a stream event by event, a slow stream. */
export type Answer = 'whole' | 'stream' | 'single' | 'slow'
const ANSWERS: Answer[] = ['whole', 'stream', 'single', 'slow']
const MESSAGES = ['messages', 'messages-single']

/** The ways through Gatehouse: the client's dialect is the vendor's, and its events pass or are translated all the same. */
export const ROUTES = ['relayed', 'translated'] as const
export type StreamRoute = (typeof ROUTES)[number]
export type Way = { route: StreamRoute; dialect: 'chat completions' | 'messages'; answer: 'stream' | 'single' }

export type Subject = {
  name: SubjectName
  target: (answer: Answer) => Target
  /** The target of a route. */
  way?: (way: Way) => Target
  /** Starts a fresh process; undefined where there is none of its own (direct). */
  start: (() => Group) | undefined
  /** Other ways to start it, whose start-up time is worth knowing. */
  alsoStarts: { name: string; start: () => Group }[]
}

export type SubjectParts = {
  dir: string
  tools: Tools
  vendorPort: number
  gatehouse: { binary: string; isOurs: boolean }
}

const REPOSITORY = resolve(import.meta.dir, '..')
/** Not secrets: they open nothing but what the benchmark itself starts. */
const TOKEN = `sk-${'benchmark0'.repeat(5).slice(0, 48)}`
export const VENDOR_KEY = 'bench-vendor-key'

/** Starts the benchmark's vendor and waits for the port that it was given. */
export async function startVendor(dir: string): Promise<{ group: Group; port: number }> {
  const command = [process.execPath, join(import.meta.dir, 'upstream.ts')]
  const group = startGroup({ command, core: LOAD_CORE, log: join(dir, 'vendor.log') })
  for (let tries = 0; tries < 200; tries++) {
    const port = /"port":(\d+)/.exec(readFileSync(group.log, 'utf8'))?.[1]
    if (port) return { group, port: Number(port) }
    await Bun.sleep(25)
  }
  throw new Error(`the benchmark's vendor did not start: ${logTail(group)}`)
}

export function createSubjects(parts: SubjectParts): Subject[] {
  const subjects = [direct(parts), bun(parts), gatehouse(parts)]
  if (parts.tools.nginx) subjects.push(nginx(parts, parts.tools.nginx))
  if (parts.tools.portkey && parts.tools.node) subjects.push(portkey(parts, [parts.tools.node, parts.tools.portkey]))
  return subjects.toSorted((a, b) => SUBJECTS.indexOf(a.name) - SUBJECTS.indexOf(b.name))
}

/** What can be asked, whatever it is. */
type Asked = { name: string; target: (answer: Answer) => Target }

/** Waits until a chat request is answered with 200, and returns how long that took from now, in milliseconds. */
export async function untilAccepted(subject: Asked, group: Group, seconds = 30): Promise<number> {
  const { url, headers, body } = subject.target('whole')
  const from = performance.now()
  let last = 'no answer'
  while (performance.now() - from < seconds * 1000) {
    try {
      const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(5000) })
      const text = await answer.text()
      if (answer.status === 200) return performance.now() - from
      last = `HTTP ${answer.status}: ${text.slice(0, 300)}`
      await Bun.sleep(100)
    } catch {
      // Not listening yet; a refused connection costs nothing, so it is tried again at once.
      await Bun.sleep(1)
    }
  }
  throw new Error(`${subject.name} accepted no request within ${seconds} s (${last}). ${logTail(group)}`)
}

/** Checks that a subject gives whole, true answers, so that nobody is measured at giving wrong ones. */
export async function checkAnswers(subject: Asked): Promise<void> {
  const ask = async (answer: Answer) => {
    const { url, headers, body } = subject.target(answer)
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${subject.name} answered ${response.status}: ${text.slice(0, 300)}`)
    return text
  }
  const whole = await ask('whole')
  if (!whole.includes('"total_tokens":144')) throw new Error(`${subject.name} lost the answer's usage: ${whole}`)
  const stream = await ask('stream')
  const words = stream.split('"content":"').length - 1
  if (words < 199 || !stream.includes('data: [DONE]')) {
    throw new Error(`${subject.name} lost a part of the stream: ${words} pieces of content of 199`)
  }
}

export function logTail(group: Group): string {
  return `Its last output: ${readFileSync(group.log, 'utf8').slice(-1500).trim() || '(none)'}`
}

export function bodyFor(model: string, streamed: boolean): string {
  return JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'You are a helpful assistant. Answer briefly and name your sources.' },
      { role: 'user', content: 'What does a gateway to hosted models do, and why would a team run one of its own?' },
    ],
    temperature: 0.7,
    max_tokens: 512,
    ...(streamed ? { stream: true } : {}),
  })
}

function targets(port: number, prefix: string, headers: Record<string, string> = {}) {
  return (answer: Answer): Target => ({
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    headers: { 'content-type': 'application/json', ...headers },
    body: bodyFor(prefix + answer, answer !== 'whole'),
  })
}

/** A port that is free now. */
export function freePort(): number {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
  const { port } = probe
  probe.stop(true)
  return port
}

function direct({ vendorPort }: SubjectParts): Subject {
  const target = targets(vendorPort, '', { authorization: `Bearer ${VENDOR_KEY}` })
  return { name: 'direct', target, start: undefined, alsoStarts: [] }
}

/** Nothing but forwarding, by the fastest means there is: what a gateway in any language can at most approach. */
function nginx({ dir, vendorPort }: SubjectParts, binary: string): Subject {
  const port = freePort()
  const home = join(dir, 'nginx')
  mkdirSync(home, { recursive: true })
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    join(home, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_requests 1000000000;
  ${temporary.map((name) => `${name}_temp_path ${home}/${name};`).join(' ')}
  upstream vendor { server 127.0.0.1:${vendorPort}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://vendor; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`,
  )
  const command = [binary, '-c', join(home, 'nginx.conf'), '-e', join(home, 'error.log'), '-p', home]
  const start = () => startGroup({ command, core: GATEWAY_CORE, log: join(dir, 'nginx.log') })
  return {
    name: 'nginx',
    target: targets(port, '', { authorization: `Bearer ${VENDOR_KEY}` }),
    start,
    alsoStarts: [],
  }
}

type BareProxyOrder = { port: number; vendorPort: number; log: string }

export function bareProxy({ port, vendorPort, log }: BareProxyOrder): Group {
  const command = [process.execPath, join(import.meta.dir, 'bare-proxy.ts')]
  const env = { PORT: String(port), VENDOR_PORT: String(vendorPort), VENDOR_KEY }
  return startGroup({ command, core: GATEWAY_CORE, log, env })
}

/** What a gateway on the same runtime can at most approach: it parses, sends, parses and returns. */
function bun({ dir, vendorPort }: SubjectParts): Subject {
  const port = freePort()
  return {
    name: 'bun',
    target: targets(port, '', { authorization: `Bearer ${VENDOR_KEY}` }),
    start: () => bareProxy({ port, vendorPort, log: join(dir, 'bun.log') }),
    alsoStarts: [],
  }
}

/** As in production: a configuration file, tokens checked, every request logged to a file, usage recorded on disk. */
function gatehouse({ dir, vendorPort, gatehouse: { binary, isOurs } }: SubjectParts): Subject {
  const port = freePort()
  const file = join(dir, 'gatehouse.yaml')
  const modelsOf = (names: string[], prefix: string, provider: string) =>
    names.map((name) => `  ${prefix}/${name}: { targets: [{ provider: ${provider}, model: ${name} }] }`)
  const models = [
    ...modelsOf(ANSWERS, 'bench', 'vendor'),
    ...modelsOf(['stream', 'single'], 'translated', 'translated'),
    ...modelsOf(MESSAGES, 'messages', 'messages'),
    ...modelsOf(MESSAGES, 'translated', 'messages-translated'),
  ]
  const at = `base_url: "http://127.0.0.1:${vendorPort}/v1", key: "\${BENCH_VENDOR_KEY}"`
  writeFileSync(
    file,
    `providers:
  vendor: { kind: chatcompat, ${at} }
  translated: { kind: chatcompat, ${at}, quirks: { passthrough: false } }
  messages: { kind: messages-compat, ${at} }
  messages-translated: { kind: messages-compat, ${at}, quirks: { passthrough: false } }
models:
${models.join('\n')}
`,
  )
  const env = {
    GATEHOUSE_CONFIG: file,
    GATEHOUSE_DATA_DIR: join(dir, 'data'),
    GATEHOUSE_PORT: String(port),
    GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN,
    BENCH_VENDOR_KEY: VENDOR_KEY,
  }
  const order = { core: GATEWAY_CORE, log: join(dir, 'gatehouse.log'), env, cwd: REPOSITORY }
  return {
    name: 'gatehouse',
    target: targets(port, 'bench/', { authorization: `Bearer ${TOKEN}` }),
    way({ route, dialect, answer }) {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` }
      if (dialect === 'chat completions') {
        const model = `${route === 'relayed' ? 'bench' : 'translated'}/${answer}`
        return { url: `http://127.0.0.1:${port}/v1/chat/completions`, headers, body: bodyFor(model, true) }
      }
      const model = `${route === 'relayed' ? 'messages' : 'translated'}/${answer === 'single' ? 'messages-single' : 'messages'}`
      const { messages, ...body } = JSON.parse(bodyFor(model, true))
      const [{ content: system }, ...others] = messages
      return {
        url: `http://127.0.0.1:${port}/v1/messages`,
        headers,
        body: JSON.stringify({ ...body, system, messages: others }),
      }
    },
    start: () => startGroup({ ...order, command: [binary, 'serve'] }),
    // `npm start` starts what is in this repository, whatever else is being measured.
    alsoStarts: isOurs ? [{ name: 'npm start', start: () => startGroup({ ...order, command: ['npm', 'start'] }) }] : [],
  }
}

/** Its own package on Node, without its console; the vendor is named by headers, as its manual shows. */
function portkey({ dir, vendorPort }: SubjectParts, [node, script]: [string, string]): Subject {
  const port = freePort()
  const command = [node, script, '--headless', `--port=${port}`]
  const env = { NODE_ENV: 'production' }
  return {
    name: 'portkey',
    target: targets(port, '', {
      authorization: `Bearer ${VENDOR_KEY}`,
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${vendorPort}/v1`,
    }),
    start: () => startGroup({ command, core: GATEWAY_CORE, log: join(dir, 'portkey.log'), env }),
    alsoStarts: [],
  }
}
