/** Files, batches, audio, realtime sessions and paths by name are in the OpenAPI document, the manual, metrics, ledger and request log. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_METRICS } from '../src/config/config.ts'
import { OWNER } from './kit/admin.ts'
import { chatLine } from './kit/batches.ts'
import { openPort, type Port } from './kit/served.ts'
import { startVendor, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const reference = join(import.meta.dir, '../docs/manual/reference')
const pages = ['paths.md', 'realtime.md'].map((name) => readFileSync(join(reference, name), 'utf8'))
const manual = pages.join('')

const vendor = startVendor()
vendor.otherwise(whole({ ok: true }))
let port: Port
beforeAll(async () => {
  port = await openPort({
    admin_token: OWNER,
    metrics: { ...DEFAULT_METRICS, enabled: true },
    providers: { acme: { base_url: vendor.url, key: 'k', passthrough_paths: [{ path: '/**', methods: ['GET'] }] } },
  })
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
})

const formOf = (fields: Json, file: File): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value))
  form.append('file', file)
  return form
}
const audio = () => new File([new Uint8Array([0xff, 0xf3, 0x44, 0xc0])], 'a.mp3')
const jsonl = () => new File([JSON.stringify(chatLine('one'))], 'a.jsonl')

async function session(): Promise<undefined> {
  const url = `${port.url.replace('http', 'ws')}/realtime?model=sandbox/realtime`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${port.token}` } } as never)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.onclose = () => reject(new Error('The session was closed.'))
  socket.onmessage = ({ data }) => {
    const { type } = JSON.parse(String(data)) as { type: string }
    if (type === 'session.created') socket.send('{"type":"response.create","response":{"output_modalities":["text"]}}')
    if (type === 'response.done') resolve()
  }
  await promise
  socket.close()
}

async function batch(): Promise<Response> {
  const uploaded = await port.gateway.call('/v1/files', { form: formOf({ purpose: 'batch' }, jsonl()) })
  const { id } = (await uploaded.json()) as { id: string }
  const json = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  return port.gateway.call('/v1/batches', { json })
}

async function messageBatch(): Promise<Response> {
  const params = { model: 'sandbox/general', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] }
  return port.gateway.call('/v1/messages/batches', { json: { requests: [{ custom_id: 'one', params }] } })
}

const speech = { model: 'sandbox/speech', input: 'Good morning.', voice: 'tone' }
const transcribed = { model: 'sandbox/transcription' }
const secret = { session: { type: 'realtime', model: 'sandbox/realtime' } }

type Shape = {
  send(): Promise<Response | undefined>
  /** Its model in the ledger, and the path (of a session the family) of its rows in the request log, where it makes calls. */
  model?: string
  logged?: string
  method?: string
}

const PATHS: Record<string, Shape> = {
  '/v1/files': { send: () => port.gateway.call('/v1/files', { form: formOf({ purpose: 'user_data' }, audio()) }) },
  '/v1/batches': { send: batch, model: 'sandbox/general', logged: '/v1/chat/completions' },
  '/v1/messages/batches': { send: messageBatch, model: 'sandbox/general', logged: '/v1/messages' },
  '/v1/audio/speech': {
    send: () => port.gateway.call('/v1/audio/speech', { json: speech }),
    model: 'sandbox/speech',
    logged: '/v1/audio/speech',
  },
  '/v1/audio/transcriptions': {
    send: () => port.gateway.call('/v1/audio/transcriptions', { form: formOf(transcribed, audio()) }),
    model: 'sandbox/transcription',
    logged: '/v1/audio/transcriptions',
  },
  '/v1/audio/translations': {
    send: () => port.gateway.call('/v1/audio/translations', { form: formOf(transcribed, audio()) }),
    model: 'sandbox/transcription',
    logged: '/v1/audio/translations',
  },
  '/v1/realtime': { send: session, model: 'sandbox/realtime', logged: 'realtime', method: 'GET' },
  '/v1/realtime/client_secrets': { send: () => port.gateway.call('/v1/realtime/client_secrets', { json: secret }) },
  '/passthrough/{provider}/{path}': {
    send: () => port.gateway.call('/passthrough/acme/files'),
    model: 'passthrough/acme',
    logged: '/passthrough/acme/files',
    method: 'GET',
  },
}

/** What the gateway tells of its own work, once it tells that. */
async function told<T>(path: string, find: (body: string) => T | undefined, token = port.token): Promise<T> {
  for (;;) {
    const answer = await port.gateway.call(path, { headers: { authorization: `Bearer ${token}` } })
    const body = await answer.text()
    if (answer.status !== 200) throw new Error(body)
    const found = find(body)
    if (found !== undefined) return found
    await new Promise(setImmediate)
  }
}

describe.each(Object.entries(PATHS))('%s', (path, { send, model, logged, method = 'POST' }) => {
  beforeAll(async () => {
    const answer = await send()
    if (answer && answer.status >= 300) throw new Error(await answer.text())
    await answer?.arrayBuffer()
  })

  test('is in the OpenAPI document and in the manual', async () => {
    const { paths } = (await (await port.gateway.call('/openapi.json')).json()) as { paths: Record<string, Json> }
    expect(Object.keys(paths[path] ?? {})).toContain(method.toLowerCase())
    expect(manual).toContain(path)
  })

  test('is counted by the metrics', async () => {
    const route = path.replaceAll(/\{(\w+)\}/g, ':$1')
    await told('/metrics', (text) =>
      text.split('\n').find((line) => line.startsWith('gatehouse_http_requests_total') && line.includes(route)),
    )
  })

  test.skipIf(model === undefined)('has an entry in the ledger', async () => {
    await told('/v1/usage?by=model', (text) =>
      (JSON.parse(text) as { data: { model: string }[] }).data.find((row) => row.model === model),
    )
  })

  test.skipIf(logged === undefined)('has a row in the request log', async () => {
    const find = (text: string) =>
      (JSON.parse(text) as { data: { path?: string; family: string }[] }).data.find(
        (row) => (row.path ?? row.family) === logged,
      )
    await told('/admin/v1/requests?limit=100', find, OWNER)
  })
})
