/** Drafts of providers by the admin API: tested with what was typed, compared, and written into the file. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import { refusal, startAdminGateway } from './kit/admin.ts'
import { startVendor } from './kit/vendor.ts'

const SECRET = 'sk-typed-0123456789'
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(text: string, settings: object = {}, environment: Record<string, string> = {}) {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-drafts-'))
  closing.push(() => rmSync(root, { recursive: true }))
  const [file, data_dir] = [join(root, 'gatehouse.yaml'), join(root, 'data')]
  mkdirSync(data_dir)
  writeFileSync(file, text)
  const gateway = await startAdminGateway({ file, data_dir, ...settings }, { environment })
  closing.push(() => gateway[Symbol.asyncDispose]())
  const send = (act: string, json: object) => gateway.admin(`/provider-drafts/${act}`, { json })
  return { gateway, file, send, written: () => readFileSync(file, 'utf8') }
}

function vendor() {
  const started = startVendor()
  closing.push(() => started.stop())
  return started
}

type Difference = { yaml: string; version: string; reason: string | null; changes: { path: string }[] }

describe('a draft of a provider', () => {
  it('is tested without being written, and lists the models', async () => {
    const { send, written } = await start('sandbox: true\n')
    const { url, requests } = vendor()
    const response = await send('test', { id: 'acme', settings: { base_url: url, key: SECRET } })
    const body = await response.text()
    expect(JSON.parse(body)).toMatchObject({ result: 'ok', list: [{ model: 'test-model' }], list_is_cut: false })
    expect(body).not.toContain(SECRET)
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${SECRET}`)
    expect(written()).toBe('sandbox: true\n')
  })

  it('is compared with the file, and written with the models that are chosen; the rest of the file stays', async () => {
    const { send, written } = await start('# ours\nsandbox: true # yes\n')
    const draft = {
      id: 'acme',
      settings: { base_url: 'http://127.0.0.1:9/v1', key: SECRET },
      models: [{ model: 'large' }, { model: 'pictures', families: ['image-generation'] }],
    }
    const text = await (await send('diff', draft)).text()
    expect(text).not.toContain(SECRET)
    const { version, reason, yaml } = JSON.parse(text) as Difference
    expect([reason, yaml.includes('key: "***"')]).toEqual([null, true])
    const response = await send('apply', { ...draft, base: version })
    expect([response.status, (await response.text()).includes(SECRET)]).toEqual([200, false])
    expect(written()).toStartWith('# ours\nsandbox: true # yes\n')
    expect(written()).toContain(`key: ${SECRET}`)
    expect(written()).toContain('acme/pictures:\n    families: [image-generation]\n')
    expect(await refusal(await send('apply', draft))).toEqual([400, 'invalid_value'])
  })

  it('is not written over a file that has changed since', async () => {
    const { send, file } = await start('sandbox: true\n')
    const draft = { id: 'acme', settings: { base_url: 'http://127.0.0.1:9/v1' } }
    const { version } = (await (await send('diff', draft)).json()) as Difference
    writeFileSync(file, 'sandbox: false\n')
    expect(await refusal(await send('apply', { ...draft, base: version }))).toEqual([412, 'precondition_failed'])
  })

  it('is not written where another was written meanwhile, from the same file', async () => {
    const { send, written } = await start('sandbox: true\n')
    const draft = (id: string) => ({ id, settings: { base_url: 'http://127.0.0.1:9/v1' } })
    const { version } = (await (await send('diff', draft('a'))).json()) as Difference
    for (const base of [{ base: version }, {}]) {
      const before = written()
      const ids = base.base === undefined ? ['c', 'd'] : ['a', 'b']
      const responses = await Promise.all(ids.map((id) => send('apply', { ...draft(id), ...base })))
      const statuses = responses.map(({ status }) => status)
      expect(statuses.toSorted()).toEqual([200, 412])
      expect(written()).toStartWith(before)
      expect(written()).toContain(`\n  ${ids[statuses.indexOf(200)]}:\n`)
    }
  })

  it('may take its key from a variable that the operator allows', async () => {
    const { send, written } = await start(
      'admin: { config_variables: [ACME_KEY] }\n',
      {},
      { ACME_KEY: 'sk-variable-0123456789' },
    )
    const { url, requests } = vendor()
    const draft = { id: 'acme', settings: { base_url: url, key: '${ACME_KEY}' } }
    expect(await (await send('test', draft)).json()).toMatchObject({ result: 'ok' })
    expect(requests[0]?.headers.authorization).toBe('Bearer sk-variable-0123456789')
    const applied = await send('apply', draft)
    expect([applied.status, written().includes('key: "${ACME_KEY}"')]).toEqual([200, true])
  })

  it('is refused with an id that every object has as a member', async () => {
    const { send, written } = await start('sandbox: true\n')
    const response = await send('apply', { id: '__proto__', settings: { base_url: 'http://127.0.0.1:9/v1' } })
    const polluted = ({} as { base_url?: string }).base_url
    delete (Object.prototype as { base_url?: string }).base_url
    expect([response.status, polluted, written()]).toEqual([400, undefined, 'sandbox: true\n'])
  })

  it('is shown with the reason where the gateway does not write the file', async () => {
    const { send } = await start('admin: { config_by_api: validate }\n', {
      admin: { ...DEFAULT_ADMIN, config_by_api: 'validate' },
    })
    const draft = { id: 'acme', settings: { preset: 'openai', key: SECRET } }
    const compared = await send('diff', draft)
    const { reason, yaml } = (await compared.json()) as Difference
    expect(compared.status).toBe(200)
    expect(reason).toContain('config_by_api')
    expect(yaml).toContain('preset: openai')
    expect(await refusal(await send('apply', draft))).toEqual([403, 'permission_denied'])
  })

  it('may have no more than a configuration by the admin API', async () => {
    const { send } = await start('sandbox: true\n')
    const settings = { base_url: 'http://127.0.0.1:9/v1', key: '${HOME}' }
    for (const act of ['test', 'diff', 'apply']) {
      const response = await send(act, { id: 'acme', settings })
      expect([act, response.status]).toEqual([act, 400])
      expect(await response.text()).toContain('may not take ${HOME} by the admin API')
    }
    const metadata = { base_url: 'http://169.254.169.254/v1', key: SECRET }
    expect(await refusal(await send('test', { id: 'acme', settings: metadata }))).toEqual([400, 'invalid_value'])
  })

  it('may make the file no longer than a text by the admin API', async () => {
    const { send, written } = await start('sandbox: true\n')
    const settings = { base_url: 'http://127.0.0.1:9/v1' }
    const models = (count: number, length: number) =>
      Array.from({ length: count }, (_, index) => ({ model: `${index}`.padEnd(length, 'x') }))
    for (const list of [models(1_000, 300), models(1_000, 260)]) {
      const response = await send('apply', { id: 'acme', settings, models: list })
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('262144 characters')])
    }
    expect(written()).toBe('sandbox: true\n')
  })

  it('is said to be silent where the vendor does not answer within 10 seconds', async () => {
    const { gateway, send } = await start('sandbox: true\n')
    const asked = Promise.withResolvers<void>()
    const silent = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch() {
        asked.resolve()
        return new Promise<Response>(() => {})
      },
    })
    closing.push(() => silent.stop(true))
    const settings = { base_url: `http://127.0.0.1:${silent.port}/v1`, key: SECRET }
    const tested = send('test', { id: 'acme', settings })
    await asked.promise
    gateway.clock.advance(10_000)
    expect(await (await tested).json()).toMatchObject({ result: 'failed', message: 'no answer within 10 s', list: [] })
  })

  it('is for owners', async () => {
    const { gateway } = await start('sandbox: true\n')
    const { secret } = await gateway.read<{ secret: string }>('/admin-tokens', {
      json: { name: 'o', role: 'operator' },
    })
    for (const act of ['test', 'diff', 'apply']) {
      const response = await gateway.admin(`/provider-drafts/${act}`, { json: { id: 'a', settings: {} }, as: secret })
      expect(response.status).toBe(403)
    }
  })
})

describe('one more key of a provider', () => {
  it.each([
    [
      'of one key in braces',
      "providers:\n  acme: { base_url: 'URL', key: old-key }\n",
      'keys: [{ name: "main", key: "old-key" }, { name: "spare", key: "KEY" }]',
    ],
    [
      'of one key on a line',
      'providers:\n  acme:\n    base_url: URL\n    key: old-key # since May\n',
      'keys: [{ name: "main", key: "old-key" }, { name: "spare", key: "KEY" }] # since May',
    ],
    [
      'of a list in brackets',
      'providers:\n  acme: { base_url: URL, keys: [{ name: a, key: old-key }] }\n',
      '{ name: a, key: old-key }, { name: "spare", key: "KEY" }]',
    ],
    [
      'of a list of lines',
      'providers:\n  acme:\n    base_url: URL\n    keys:\n      - name: a\n        key: old-key # first\n    discover: false\n',
      '        key: old-key # first\n      - { name: "spare", key: "KEY" }\n    discover: false\n',
    ],
  ])('is written after that %s, and tested alone', async (_, template, expected) => {
    const { url, requests } = vendor()
    const { send, written } = await start(template.replace('URL', url))
    const draft = { id: 'acme', new_key: { name: 'spare', key: SECRET } }
    expect(await (await send('test', draft)).json()).toMatchObject({ result: 'ok', key: 'spare' })
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${SECRET}`)
    const shown = await (await send('diff', draft)).text()
    expect(shown).not.toMatch(/old-key|sk-typed/)
    expect((await send('apply', draft)).status).toBe(200)
    expect(written()).toContain(expected.replace('KEY', SECRET))
  })

  it('keeps the reference of the key that was there', async () => {
    const { send, written } = await start(
      'providers:\n  acme: { base_url: https://api.acme.test/v1, key: "${ACME_KEY}" }\n',
      {},
      { ACME_KEY: 'sk-variable-0123456789' },
    )
    const response = await send('apply', { id: 'acme', new_key: { name: 'spare', key: SECRET } })
    expect([response.status, written().includes('{ name: "main", key: "${ACME_KEY}" }')]).toEqual([200, true])
  })

  it.each([
    ['other: *a', 'acme: &a { base_url: https://a.test/v1, key: old-key }\n  other: *a\n'],
    [
      '<<: *a',
      'acme: &a { base_url: https://a.test/v1, key: old-key }\n  other: { <<: *a, base_url: https://b.test/v1 }\n',
    ],
    ['key: |', 'acme:\n    key: |-\n      old-key\n    base_url: https://a.test/v1\n'],
  ])('is not given to another provider, nor written between other lines: %s', async (_, providers) => {
    const text = `providers:\n  ${providers}`
    const { send, written } = await start(text)
    const response = await send('apply', { id: 'acme', new_key: { name: 'spare', key: SECRET } })
    expect([response.status, written()]).toEqual([400, text])
    expect(await response.text()).toContain('cannot be edited')
  })

  it('is refused for a provider that the file does not have', async () => {
    const { send } = await start('sandbox: true\n')
    const response = await send('diff', { id: 'acme', new_key: { name: 'spare', key: SECRET } })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('has no provider acme')
  })
})
