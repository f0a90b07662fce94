/** The process is killed while it makes responses in the background: what was promised is kept, by the next process. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BackgroundPlan } from './kit/background-responses.ts'
import { openPort } from './kit/served.ts'
import { chunk, chunks, hang, startVendor, stream, type Vendor } from './kit/vendor.ts'

const TOKEN = 'sk-crash-suite-0000000000000000'
/** A minute's lease is over after two seconds. */
const SPEED = 30
const PATIENCE_MILLISECONDS = 30_000

type Answer = { id: string; status: string; error: { code: string } | null; output: { content: { text: string }[] }[] }
type GatewaySetup = { url: string; kill(): Promise<void> }

let directory: string
let vendor: Vendor
let epoch_ms: number
let gateways: GatewaySetup[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-crash-responses-'))
  vendor = startVendor()
  epoch_ms = Date.now()
})
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.kill()))
  gateways = []
  await vendor.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function startTestGateway(): Promise<GatewaySetup> {
  const plan: BackgroundPlan = { data_dir: directory, vendor_url: vendor.url, token: TOKEN, speed: SPEED, epoch_ms }
  const script = join(import.meta.dir, 'kit/background-responses.ts')
  const child = Bun.spawn([process.execPath, script, JSON.stringify(plan)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = child.stdout.getReader()
  const { value } = await reader.read()
  const gateway: GatewaySetup = {
    url: new TextDecoder().decode(value).trim(),
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
  gateways.push(gateway)
  return gateway
}

const call = (gateway: GatewaySetup, path: string, json?: object) =>
  fetch(`${gateway.url}/v1/responses${path}`, {
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(json
      ? { method: 'POST', body: JSON.stringify({ model: 'v/m', input: 'Think.', background: true, ...json }) }
      : {}),
  })
const promised = async (gateway: GatewaySetup) => (await (await call(gateway, '', {})).json()) as Answer

async function ended(gateway: GatewaySetup, id: string): Promise<Answer> {
  for (const start = Date.now(); Date.now() - start < PATIENCE_MILLISECONDS; ) {
    const response = (await (await call(gateway, `/${id}`)).json()) as Answer
    if (response.status !== 'queued' && response.status !== 'in_progress') return response
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('It did not end in time.')
}

/** The events up to the first that `is` looked for. */
async function eventsUntil(response: Response, is: (text: string) => boolean): Promise<string> {
  let text = ''
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString()
    if (is(text)) break
  }
  return text
}

test('one that was being made is made by the next process', async () => {
  vendor.answer(hang(), stream(chunks('Well ', 'thought.')))
  const first = await startTestGateway()
  const { id } = await promised(first)
  await vendor.request()
  await first.kill()
  const response = await ended(await startTestGateway(), id)
  expect([response.status, response.output[0]?.content[0]?.text]).toEqual(['completed', 'Well thought.'])
  expect(vendor.requests).toHaveLength(2)
}, 60_000)

test('one that two processes died of is given up, and not asked for again', async () => {
  vendor.answer(hang(), hang())
  const first = await startTestGateway()
  const { id } = await promised(first)
  await vendor.request(1)
  await first.kill()
  const second = await startTestGateway()
  await vendor.request(2)
  await second.kill()
  const response = await ended(await startTestGateway(), id)
  expect([response.status, response.error?.code]).toEqual(['failed', 'server_error'])
  expect(vendor.requests).toHaveLength(2)
}, 60_000)

test('one of which words were told is told to have failed, by its number', async () => {
  vendor.answer(stream([chunk({ content: 'Hel' })], { hangAfter: 1 }))
  const first = await startTestGateway()
  const told = await eventsUntil(await call(first, '', { stream: true }), (text) => text.includes('"delta":"Hel"'))
  const { id } = (JSON.parse(/^data: (.*)$/m.exec(told)?.[1] ?? '') as { response: Answer }).response
  await first.kill()
  const second = await startTestGateway()
  const response = await ended(second, id)
  expect([response.status, response.error?.code]).toEqual(['failed', 'server_error'])
  const last = Number([...told.matchAll(/"sequence_number":(\d+)/g)].at(-1)?.[1])
  const rest = await (await call(second, `/${id}?stream=true&starting_after=${last}`)).text()
  const events = [...rest.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  expect(events.map(({ type, sequence_number }) => [type, sequence_number])).toEqual([
    ['error', last + 1],
    ['response.failed', last + 2],
  ])
  expect(vendor.requests).toHaveLength(1)
}, 60_000)

test('a gateway that is stopped lays it down, and another one takes it on at once, as often as that comes', async () => {
  vendor.answer(hang(), hang(), hang(), stream(chunks('Well ', 'thought.')))
  const store_url = `sqlite:${directory}/gatehouse.db`
  const settings = {
    bootstrap_token: TOKEN,
    providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
    models: { 'v/m': {} },
  }
  const open = () => openPort(settings, { store_url })
  const asGateway = ({ url }: { url: string }): GatewaySetup => ({
    url: url.replace(/\/v1$/, ''),
    kill: async () => {},
  })
  const first = await open()
  const { id } = await promised(asGateway(first))
  await vendor.request(1)
  await first.close()
  for (const count of [2, 3]) {
    const next = await open()
    await vendor.request(count)
    await next.close()
  }
  const last = await open()
  expect((await ended(asGateway(last), id)).status).toBe('completed')
  await last.close()
}, 60_000)
