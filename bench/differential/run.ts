/** `npm run test:differential -- --before DIRECTORY`: the same generated calls against two versions; all must agree. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Call, generateCalls } from './calls.ts'
import { differenceOf, differInOrderOnly, type Outcome, outcomeOf, stable } from './compare.ts'
import { startVendor, type Vendor } from './vendor.ts'

const HELP = `usage: npm run test:differential -- --before DIRECTORY [--calls N] [--seed N]

Starts the gateway of DIRECTORY (an installed checkout of another version) and that of this checkout, each with
a simulated vendor of its own, and sends both the same calls. Compared are the status, headers and body of each
response, the requests that reached the vendor, and at the end the metrics, the usage and the request log.
`
const TOKEN = `sk-${'differential'.repeat(5).slice(0, 48)}`
const ADMIN_TOKEN = `gha-${'differential'.repeat(5).slice(0, 48)}`
const VENDOR_KEY = 'vendor-key-0123456789abcdef'
const SHOWN = 20

type Side = { url: string; vendor: Vendor; stop(): Promise<void> }

function configFor(port: number): string {
  const at = `http://127.0.0.1:${port}`
  const price = 'prices: { currency: USD, input: 2.5, cached_input: 1, output: 10 }'
  const model = (name: string, provider: string, more = '') =>
    `  ${name}: { targets: [{ provider: ${provider}, model: m }], routing: { tries: 1 }, ${price}${more} }`
  const key = 'key: "${DIFFERENTIAL_VENDOR_KEY}"'
  // A busy machine must not make one side refuse what the other serves.
  return `server: { host: 127.0.0.1, port: 0, max_delay_ms: 0 }
sandbox: true
providers:
  chat: { kind: chatcompat, base_url: "${at}/v1", ${key} }
  down: { kind: chatcompat, base_url: "${at}/down/v1", ${key} }
  claude: { kind: messages-compat, base_url: "${at}/v1", ${key} }
  gemini: { kind: contentgen-compat, base_url: "${at}/v1beta", ${key} }
  answers: { kind: responses-compat, base_url: "${at}/v1", ${key} }
  ranks: { kind: rerank-compat, base_url: "${at}/v1", ${key} }
rate_limits: { requests_per_minute: 1000000, tokens_per_minute: 1000000000 }
budgets: [{ amount: 1000000, window: month }]
request_log: { keep_days: 1 }
models:
${model('chatcompat', 'chat', ', cache: { ttl_seconds: 3600 }')}
${model('messages', 'claude')}
${model('contentgen', 'gemini')}
${model('responses', 'answers')}
${model('embedding', 'chat', ', families: [embeddings]')}
${model('rerank', 'ranks', ', families: [rerank]')}
${model('moderation', 'chat', ', families: [moderations]')}
${model('image', 'chat', ', families: [image-generation]')}
  fallback:
    targets: [{ provider: down, model: m }, { provider: chat, model: m }]
    routing: { strategy: priority }
    ${price}
`
}

async function startSide(directory: string, home: string): Promise<Side> {
  const vendor = startVendor(VENDOR_KEY)
  writeFileSync(join(home, 'gatehouse.yaml'), configFor(vendor.port))
  const child = Bun.spawn([join(directory, 'bin/gatehouse'), 'serve', '--json'], {
    cwd: home,
    env: {
      PATH: process.env.PATH ?? '',
      GATEHOUSE_DATA_DIR: join(home, 'data'),
      GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN,
      GATEHOUSE_ADMIN_TOKEN: ADMIN_TOKEN,
      GATEHOUSE_LOG: 'error',
      DIFFERENTIAL_VENDOR_KEY: VENDOR_KEY,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: Bun.file(join(home, 'gateway.log')),
  })
  const stop = async () => {
    child.kill('SIGKILL')
    await child.exited
    vendor.close()
  }
  let text = ''
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += piece
    if (text.includes('\n')) return { url: (JSON.parse(text) as { url: string }).url, vendor, stop }
  }
  throw new Error(`${directory} did not start:\n${await Bun.file(join(home, 'gateway.log')).text()}`)
}

async function send({ url }: Side, call: Call): Promise<Outcome> {
  const body = call.method === 'GET' ? {} : { body: call.body }
  return outcomeOf(await fetch(url + call.path, { method: call.method, headers: call.headers, ...body }))
}

/** What both vendors received since the last call. */
function requestsAt({ vendor }: Side): string {
  return vendor.received
    .splice(0)
    .map(({ method, path, body }) => `${method} ${path} ${stable(body)}`)
    .join('\n')
}

const textOf = ({ status, headers, body }: Outcome): Record<string, string> => ({
  status: String(status),
  headers: headers.map((header) => header.join(': ')).join('\n'),
  body,
})

/** The sums at the end, by name. */
async function sumsOf({ url }: Side): Promise<Record<string, string>> {
  const get = async (path: string, token: string) => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
    return `${response.status} ${await response.text()}`
  }
  const metrics = (await get('/metrics', ADMIN_TOKEN))
    .split('\n')
    .filter((line) => /^gatehouse_\w*(requests|tokens|cost|errors|cache)\w*_total\b/.test(line))
    .sort()
    .join('\n')
  const rows = await rowsOf((cursor) => get(`/admin/v1/requests?limit=200${cursor}`, ADMIN_TOKEN))
  return {
    metrics,
    usage: stable(await get('/v1/usage', TOKEN)),
    // Rows of one millisecond have no order.
    'request log': rows.sort().join('\n'),
  }
}

type Row = Record<string, unknown>

/** Without the requests that were refused before a provider was called: the log keeps 600 of these a minute. */
async function rowsOf(page: (cursor: string) => Promise<string>): Promise<string[]> {
  const rows: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const answer = await page(cursor)
    const { data, next_cursor } = JSON.parse(answer.replace(/^\d+ /, '')) as { data: Row[]; next_cursor: string | null }
    rows.push(...data.filter(({ provider }) => provider).map(rowText))
    cursor = next_cursor === null ? null : `&cursor=${encodeURIComponent(next_cursor)}`
  }
  return rows
}
const rowText = (row: Row): string =>
  stable(JSON.stringify(row, (name, value: unknown) => (/^ms$|_ms$|_at$|id$/.test(name) ? undefined : value)))

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      before: { type: 'string' },
      calls: { type: 'string', default: '20000' },
      seed: { type: 'string', default: '20261124' },
    },
  })
  if (values.before === undefined) {
    process.stderr.write(HELP)
    return 2
  }
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-differential-'))
  const sides: Side[] = []
  try {
    for (const directory of [resolve(values.before), resolve(import.meta.dir, '../..')]) {
      sides.push(await startSide(directory, mkdtempSync(join(root, 'side-'))))
    }
    return await compareSides(sides, generateCalls(Number(values.seed), Number(values.calls), TOKEN))
  } finally {
    for (const side of sides) await side.stop()
    rmSync(root, { recursive: true, force: true })
  }
}

/** The lines that one of two texts has and the other has not. */
function onlyIn(one: string, other: string): [string, string] {
  const [lines, others] = [one.split('\n'), other.split('\n')]
  return [
    lines.filter((line) => !others.includes(line)).join('\n'),
    others.filter((line) => !lines.includes(line)).join('\n'),
  ]
}

async function compareSides(sides: readonly Side[], calls: readonly Call[]): Promise<number> {
  const [before, after] = sides
  if (!before || !after) throw new Error('two gateways are needed')
  let differences = 0
  let reordered = 0
  const compare = (name: string, one: string, other: string, call?: Call) => {
    const difference = differenceOf(one, other)
    if (difference === undefined) return
    if (differInOrderOnly(one, other)) {
      reordered++
      return
    }
    differences++
    if (differences > SHOWN) return
    const where = call
      ? `call ${call.index}, ${call.method} ${call.path}\n    ${call.body.slice(0, 300)}`
      : 'at the end'
    process.stdout.write(`${where}\n  ${name} differs ${difference}\n`)
  }
  const statuses: Record<string, number> = {}
  for (const call of calls) {
    const outcomes = await Promise.all(sides.map((side) => send(side, call)))
    const [one, other] = outcomes.map(textOf)
    for (const name of Object.keys(one ?? {})) compare(name, one?.[name] ?? '', other?.[name] ?? '', call)
    compare('the request to the vendor', requestsAt(before), requestsAt(after), call)
    const status = one?.status ?? ''
    statuses[status] = (statuses[status] ?? 0) + 1
    if (call.index % 1000 === 999)
      process.stderr.write(`${call.index + 1} of ${calls.length} calls, ${differences} differences\n`)
  }
  // The request log is written within half a second.
  await Bun.sleep(2000)
  const [sums, others] = await Promise.all(sides.map(sumsOf))
  for (const name of Object.keys(sums ?? {})) compare(name, ...onlyIn(sums?.[name] ?? '', others?.[name] ?? ''))
  process.stdout.write(
    `${calls.length} calls, by status ${JSON.stringify(statuses)}: ${differences} differences, and ${reordered} in the order of JSON members only\n`,
  )
  return differences === 0 ? 0 : 1
}

process.exit(await main())
