/** Recording answers of a provider: against providers on loopback, with secrets in all their forms. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { completion, failure, startVendor, stream, type VendorRequest, whole } from '../../test/kit/vendor.ts'
import { chatcompatWire } from '../../test/matrix/vendors/chatcompat.ts'
import { contentgenWire } from '../../test/matrix/vendors/contentgen-compat.ts'
import { messagesWire } from '../../test/matrix/vendors/messages-compat.ts'
import { responsesWire } from '../../test/matrix/vendors/responses-compat.ts'
import { startWireVendor } from '../../test/matrix/vendors/wire-vendor.ts'
import { recordProvider } from './record-provider.ts'
import { removeSecrets, secretsIn } from './secrets.ts'
import { writeRecording } from './write-recording.ts'

const KEY = 'sk-proj-abc123DEF456ghi789JKL012'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})
function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'record-test-'))
  stops.push(async () => rmSync(directory, { recursive: true, force: true }))
  return directory
}

describe('removeSecrets', () => {
  const basic = Buffer.from(`user:${KEY}`).toString('base64')
  test.each([
    ['a key', KEY],
    ['a key in an address', `https://x.example/?key=${encodeURIComponent(`${KEY}+/`)}`],
    ['a key in base64', Buffer.from(KEY).toString('base64')],
    ['a key in base64, behind others', Buffer.from(`x${KEY}`).toString('base64')],
    ['a key in hex', Buffer.from(KEY).toString('hex')],
    ['a header', `Authorization: Bearer ${KEY}`],
    ['basic authentication', `Basic ${basic}`],
    ['the beginning of a key', `Incorrect API key provided: ${KEY.slice(0, 14)}...`],
    ['a key with its middle hidden', 'Incorrect API key provided: sk-proj-************L012.'],
    ['a key of somebody else', 'sk-ant-api03-zyxwvutsrqponmlkjihgfedcba'],
    ['a token', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0'],
    ['an organization', 'in organization org-AbC123def456'],
    ['a project', 'proj_Zz9yX8wV7uT6'],
    ['an e-mail address', 'contact jane.doe@mail.test'],
    ['an address of IPv4', 'from 198.51.100.23 port'],
    ['an address of IPv6', 'from 2a02:8071:abcd:1::7'],
    ['a signed address', 'https://files.test/a.png?sig=AbCdEf123&se=2026'],
    ['an id of a request', '{"request_id":"req_011CVabcDEFghiJKLmno"}'],
    ['an id of a response', '{"id":"chatcmpl-CabcDEF123456ghi"}'],
    ['a UUID', '01a2013d-04a8-7300-82ce-83faa698edc6'],
  ])('removes %s', (_, text) => {
    const clean = removeSecrets(text, [KEY, `${KEY}+/`])
    const removed =
      /abc123DEF456|L012|zyxwv|c2lnbmF0|AbC123def456|Zz9yX8|jane\.doe|198\.51|2a02:8071|AbCdEf123|011CVabc|CabcDEF|01a2013d/
    expect(clean).not.toMatch(removed)
    for (const form of ['base64', 'hex'] as const)
      expect(clean).not.toContain(Buffer.from(KEY).toString(form).slice(6, 20))
    expect(clean).not.toContain(basic)
  })

  test('keeps what is no secret, and the form of ids', () => {
    const text = JSON.stringify({
      id: 'chatcmpl-CabcDEF123456ghi',
      object: 'chat.completion',
      created: 1_780_000_000,
      model: 'gpt-5-mini-2025-08-07',
      system_fingerprint: 'fp_1',
      choices: [{ index: 0, message: { content: 'One, two: 3.14 at 12:30:45.' } }],
      tools: [{ id: 'call_AbCdEfGh12345678', name: 'get_weather' }],
    })
    const clean = removeSecrets(text, [KEY])
    expect(JSON.parse(clean)).toEqual({
      ...JSON.parse(text),
      id: 'chatcmpl-0000000000000001',
      tools: [{ id: 'call_0000000000000002', name: 'get_weather' }],
    })
  })

  test('finds the secrets of an environment by the names of their variables', () => {
    const found = secretsIn({
      X_API_KEY: KEY,
      AWS_SECRET_ACCESS_KEY: 'a'.repeat(40),
      HOME: '/home/somebody',
      MY_TOKEN: 'short',
    })
    expect(found).toEqual([KEY, 'a'.repeat(40)])
  })
})

describe('recordProvider', () => {
  const leaky = (request: VendorRequest) => {
    const { model, stream: isStream } = request.json()
    const told = {
      message: `Incorrect key ${request.headers.authorization}, ${KEY.slice(0, 12)}, org-AbC123def456, 198.51.100.23`,
    }
    if (!request.headers.authorization?.includes(KEY)) return failure(401, told)
    if (model === 'model-that-does-not-exist') return failure(404, told)
    const answer = completion(`Hello ${KEY}`, { id: 'chatcmpl-CabcDEF123456ghi' })
    return isStream
      ? stream([
          {
            ...answer,
            choices: [{ index: 0, delta: { role: 'assistant', content: `Hi ${KEY}` }, finish_reason: null }],
          },
          { ...answer, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        ])
      : whole(answer, { headers: { 'x-request-id': 'req_secret123456' } })
  }

  async function recordLeaky() {
    const vendor = startVendor()
    stops.push(vendor.stop)
    vendor.otherwise((wire) => leaky(wire.request)(wire))
    const config = { kind: 'chatcompat' as const, base_url: vendor.url, key: KEY }
    return recordProvider({ config, model: 'm', environment: {} })
  }

  test('records whole answers, streams, calls of tools and errors, without secrets', async () => {
    const { kind, family, files, problems } = await recordLeaky()
    expect([kind, family, problems]).toEqual(['chatcompat', 'chat', []])
    expect(files.map(({ name, status }) => [name, status])).toEqual([
      ['whole.json', 200],
      ['stream.sse', 200],
      ['tool.json', 200],
      ['tool-stream.sse', 200],
      ['error-model.json', 404],
      ['error-key.json', 401],
    ])
    for (const { text } of files) expect(text).not.toMatch(/abc123|AbC123|198\.51|CabcDEF|invalid-key|req_secret/)
    expect(files[1]?.text).toEndWith('data: [DONE]\n\n')
  })

  test('writes them with their source, and replaces the section of the last recording', async () => {
    const out = temporary()
    const recording = await recordLeaky()
    for (let time = 0; time < 2; time++) writeRecording({ recording, source: 'chatcompat', model: 'm', out })
    expect(readdirSync(out).sort()).toEqual(
      ['README.md', ...recording.files.map(({ name }) => `recorded-chatcompat-${name}`)].sort(),
    )
    const readme = readFileSync(join(out, 'README.md'), 'utf8')
    expect(readme.match(/^Source: recorded on \d{4}-\d{2}-\d{2} from "chatcompat", model m/gm)).toHaveLength(1)
    expect(readme).toContain('| `recorded-chatcompat-error-key.json` | 401 |')
    writeRecording({ recording, source: 'openai', model: 'm', out })
    expect(readFileSync(join(out, 'README.md'), 'utf8')).toStartWith(readme.trimEnd())
  })

  test.each([
    ['chatcompat', chatcompatWire, '/v1'],
    ['messages-compat', messagesWire, ''],
    ['responses-compat', responsesWire, '/v1'],
    ['groq', chatcompatWire, '/v1'],
    ['contentgen-compat', contentgenWire, '/v1beta'],
  ] as const)('records the kind %s', async (kind, wire, path) => {
    const vendor = startWireVendor(wire)
    stops.push(vendor.stop)
    const config = { kind, base_url: `${vendor.origin}${path}`, key: KEY }
    const { files } = await recordProvider({ config, model: 'gemini-3.5-flash', environment: {} })
    expect(files.slice(0, 4).map(({ name, status }) => [name, status])).toEqual([
      ['whole.json', 200],
      ['stream.sse', 200],
      ['tool.json', 200],
      ['tool-stream.sse', 200],
    ])
    expect(files[2]?.text).toContain('get_weather')
    expect(files[3]?.text).toContain('get_weather')
  })

  test('records embeddings, rerank and images; a picture becomes one pixel', async () => {
    const vendor = startVendor()
    stops.push(vendor.stop)
    vendor.otherwise((wire) => {
      const { path } = wire.request
      const data = path.endsWith('/images/generations')
        ? [{ b64_json: Buffer.alloc(3000, 7).toString('base64') }]
        : [0, 1].map((index) => ({ object: 'embedding', index, embedding: [0.25, 0.5] }))
      const results = [0, 1].map((index) => ({ index, relevance_score: 0.5 }))
      const usage = { prompt_tokens: 4, total_tokens: 4 }
      return whole(
        path.endsWith('/rerank') ? { results, usage } : { object: 'list', created: 1, model: 'm', data, usage },
      )(wire)
    })
    const config = { kind: 'chatcompat' as const, base_url: vendor.url, key: KEY, fields: { allow: [] } }
    for (const family of ['embeddings', 'images'] as const) {
      const { files, problems } = await recordProvider({ config, model: 'm', family, environment: {} })
      expect([files[0]?.name, problems]).toEqual([`${family}.json`, []])
      expect((files[0]?.text ?? '').length).toBeLessThan(600)
    }
    const rerank = { ...config, kind: 'rerank-compat' as const }
    const { family, files } = await recordProvider({ config: rerank, model: 'm', environment: {} })
    expect([family, files[0]?.name]).toEqual(['rerank', 'rerank.json'])
  })

  test('writes nothing of a body that is not text, and says so', async () => {
    const vendor = startVendor()
    stops.push(vendor.stop)
    vendor.otherwise(whole('\0\0\0'))
    const config = { kind: 'chatcompat' as const, base_url: vendor.url, key: KEY }
    const { files, problems } = await recordProvider({ config, model: 'm', environment: {} })
    expect(files).toEqual([])
    expect(problems).toHaveLength(6)
  })

  test.each([
    [{ preset: 'openai' }, 'There is no key for "openai": set OPENAI_API_KEY or RECORD_KEY in the environment.'],
    [{ kind: 'messages-compat' as const, base_url: 'http://127.0.0.1:9' }, 'set RECORD_KEY in the environment'],
    [{ kind: 'xai' as const }, 'set XAI_API_KEY'],
    [{ kind: 'sandbox' as const }, 'The sandbox is simulated'],
  ])('refuses without a key, before anything is sent: %p', async (config, message) => {
    await expect(recordProvider({ config, model: 'm', environment: {} })).rejects.toThrow(message)
  })

  test('refuses a family that the provider does not have', async () => {
    const config = { kind: 'messages-compat' as const, base_url: 'http://127.0.0.1:9', key: KEY }
    await expect(recordProvider({ config, model: 'm', family: 'rerank', environment: {} })).rejects.toThrow(
      'The kind "messages-compat" has no rerank',
    )
  })
})

test('npm run record ends with a message and status 1 when there is no key', () => {
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, 'scripts/record.ts', 'openai', '--model', 'm'], {
    cwd: join(import.meta.dir, '../..'),
    env: { PATH: process.env.PATH ?? '' },
    stderr: 'pipe',
  })
  expect([exitCode, stderr.toString()]).toEqual([
    1,
    'There is no key for "openai": set OPENAI_API_KEY or RECORD_KEY in the environment.\n',
  ])
})
