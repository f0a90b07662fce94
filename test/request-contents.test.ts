/** Contents of requests: which calls are recorded, redacted and encrypted, who reads them, and what a kill leaves. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runData } from '../src/cli/commands/data.ts'
import { run } from '../src/cli/commands/requests.ts'
import { type Config, DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { loadConfig } from '../src/config/load/load.ts'
import type { ContentsConfig } from '../src/config/schema/request-log-schema.ts'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { chunks, completion, startVendor, stream, whole } from './kit/vendor.ts'

const KEY = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
const NEW_KEY = Buffer.from('fedcba9876543210fedcba9876543210').toString('base64')
const PROMPT = 'My card is 4111 1111 1111 1111, said the walrus'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Started = { gateway: AdminGateway; stop(): Promise<void>; directory: string; store_url: string }

async function start(contents: ContentsConfig, given: Partial<Config> & { store_url?: string } = {}): Promise<Started> {
  const { store_url: known, ...settings } = given
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-contents-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  const store_url = known ?? `sqlite:${join(directory, 'gatehouse.db')}`
  const request_log = { ...DEFAULT_REQUEST_LOG, contents }
  const gateway = await startAdminGateway({ contents_key: KEY, request_log, ...settings }, { store_url })
  let isOpen = true
  const stop = async () => {
    if (isOpen) await gateway[Symbol.asyncDispose]()
    isOpen = false
  }
  closing.push(stop)
  return { gateway, stop, directory, store_url }
}

const chat = (content: string, more: object = {}) => ({
  model: 'sandbox/general',
  messages: [{ role: 'user', content }],
  ...more,
})

async function send(gateway: AdminGateway, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const response = await gateway.chat(body, { headers })
  await response.clone().text()
  return response
}

/** The status and the body for the newest request. */
async function newest(gateway: AdminGateway, as?: string): Promise<[number, Record<string, unknown>]> {
  const { data } = await gateway.read<{ data: { id: string }[] }>('/requests')
  const response = await gateway.admin(`/requests/${data[0]?.id}/contents`, as === undefined ? {} : { as })
  return [response.status, await response.json()]
}

describe('contents of requests', () => {
  it('are not recorded unless they are switched on', async () => {
    const { gateway } = await start({})
    await send(gateway, chat(PROMPT), { 'x-gatehouse-log-contents': 'on' })
    expect((await newest(gateway))[0]).toBe(404)
  })

  it('are recorded with their prompt and response, redacted, and encrypted in the store', async () => {
    const { gateway, stop, directory, store_url } = await start({
      on_for: ['*'],
      patterns: [{ name: 'animal', pattern: 'walr[ux]s' }],
    })
    await send(gateway, chat(PROMPT))
    const [status, found] = await newest(gateway)
    expect([status, found]).toMatchObject([
      200,
      {
        object: 'request.contents',
        input: [
          { role: 'user', parts: [{ type: 'text', text: 'My card is [redacted:card], said the [redacted:animal]' }] },
        ],
        output: [{ index: 0, finish_reason: 'stop', parts: [{ type: 'text' }] }],
        is_cut: false,
        note: null,
      },
    ])
    const { data } = await gateway.read<{ data: { action: string }[] }>('/audit?action=request.read_contents')
    expect(data).toHaveLength(1)
    await stop()
    const rows = new Database(store_url.slice('sqlite:'.length)).query('select * from request_contents').all()
    expect(rows).toHaveLength(1)
    for (const file of readdirSync(directory)) {
      const bytes = readFileSync(join(directory, file), 'latin1')
      expect([file, bytes.includes('My card is'), bytes.includes('4111')]).toEqual([file, false, false])
    }
  })

  it('are redacted across the pieces of a stream, parsed and passed through', async () => {
    const vendor = startVendor()
    closing.push(() => vendor.stop())
    const { gateway } = await start(
      { on_for: ['*'] },
      {
        providers: { acme: { kind: 'chatcompat', base_url: vendor.url, key: 'k' } },
        models: { 'acme/m': {} },
      },
    )
    vendor.answer(stream(chunks('Pay 4111 11', '11 1111', ' 1111 to ann@exa', 'mple.org')))
    await send(gateway, chat('Hello', { model: 'acme/m', stream: true }))
    expect((await newest(gateway))[1]).toMatchObject({
      output: [{ parts: [{ type: 'text', text: 'Pay [redacted:card] to [redacted:email]' }] }],
    })
    vendor.answer(whole(completion('Call +49 171 1234567')))
    await send(gateway, chat('Hello', { model: 'acme/m' }))
    expect((await newest(gateway))[1]).toMatchObject({ output: [{ parts: [{ text: 'Call [redacted:phone]' }] }] })
  })

  it('are recorded as their project says, before what the configuration says', async () => {
    const { gateway } = await start({ on_for: ['*'] })
    const calls = async (log_contents: string | null | undefined, header?: string) => {
      const json = { name: crypto.randomUUID(), ...(log_contents !== undefined && { log_contents }) }
      const { project_id } = await gateway.read<{ project_id: string }>('/projects', { json })
      const { secret } = await gateway.read<{ secret: string }>('/tokens', { json: { name: 'app', project_id } })
      const headers = { authorization: `Bearer ${secret}`, ...(header && { 'x-gatehouse-log-contents': header }) }
      const { status } = await send(gateway, chat('Hello'), headers)
      return status === 200 ? (await newest(gateway))[0] : status
    }
    expect([await calls(undefined), await calls(null), await calls('on'), await calls('off')]).toEqual([
      200, 200, 200, 404,
    ])
    expect([await calls('header'), await calls('header', 'on'), await calls('header', 'off')]).toEqual([404, 200, 404])
    expect([await calls('on', 'off'), await calls('off', 'on')]).toEqual([400, 400])
  })

  it('are recorded of a project without any setting in the file, and need the key', async () => {
    const { gateway } = await start({})
    const json = { name: 'shop', log_contents: 'on' }
    const { project_id } = await gateway.read<{ project_id: string }>('/projects', { json })
    const { secret } = await gateway.read<{ secret: string }>('/tokens', { json: { name: 'app', project_id } })
    await send(gateway, chat('Hello'), { authorization: `Bearer ${secret}` })
    expect((await newest(gateway))[0]).toBe(200)
    const keyless = await start({}, { contents_key: undefined })
    const refused = await keyless.gateway.admin('/projects', { json })
    expect([refused.status, (await refused.json()).error.message]).toEqual([
      400,
      expect.stringContaining('the gateway needs GATEHOUSE_CONTENTS_KEY'),
    ])
    const declared = { shop: { log_contents: 'on' as const } }
    const api_tokens = { app: { secret: 'sk-declared-0123456789abcdef', project: 'shop' } }
    const other = await start({}, { contents_key: undefined, projects: declared, api_tokens })
    await send(other.gateway, chat('Hello'), { authorization: `Bearer ${api_tokens.app.secret}` })
    expect((await newest(other.gateway))[0]).toBe(404)
    expect(other.gateway.logged()).toContain('they need GATEHOUSE_CONTENTS_KEY')
  })

  it('of other families are the texts of their input', async () => {
    const { gateway } = await start({ on_for: ['*'] })
    const cases: [string, object, string[]][] = [
      ['/v1/embeddings', { model: 'sandbox/embedding', input: ['one', 'two'] }, ['one', 'two']],
      ['/v1/rerank', { model: 'sandbox/rerank', query: 'who', documents: ['me', 'you'] }, ['who', 'me', 'you']],
      [
        '/v1/moderations',
        { model: 'sandbox/moderation', input: PROMPT },
        ['My card is [redacted:card], said the walrus'],
      ],
      ['/v1/images/generations', { model: 'sandbox/image', prompt: 'a boat' }, ['a boat']],
      ['/v1/videos', { model: 'sandbox/text-to-video', prompt: 'a long boat' }, ['a long boat']],
    ]
    for (const [path, json, texts] of cases) {
      const response = await gateway.call(path, { json })
      expect([path, response.status]).toEqual([path, 200])
      await response.text()
      const [status, found] = await newest(gateway)
      expect([path, status, found]).toMatchObject([
        path,
        200,
        {
          input: texts.map((text) => ({ role: 'user', parts: [{ type: 'text', text }] })),
          output: null,
          note: 'The response of this family is no text, and is not recorded.',
        },
      ])
    }
  })

  it('of a background response are recorded where its request was to be', async () => {
    const { gateway } = await start({ by_header_for: ['*'] })
    const run = async (header: string) => {
      const json = { model: 'sandbox/general', input: 'Hello there', background: true }
      const made = await gateway.call('/v1/responses', { json, headers: { 'x-gatehouse-log-contents': header } })
      const { id } = await made.json()
      for (let status = ''; status !== 'completed'; ) {
        gateway.clock.advance(200)
        await Bun.sleep(0)
        status = (await (await gateway.call(`/v1/responses/${id}`)).json()).status
      }
      const { data } = await gateway.read<{ data: { id: string }[] }>(`/requests?request_id=${id}`)
      return gateway.admin(`/requests/${data[0]?.id}/contents`)
    }
    expect((await run('off')).status).toBe(404)
    expect(await (await run('on')).json()).toMatchObject({
      input: [{ role: 'user', parts: [{ type: 'text', text: 'Hello there' }] }],
      output: [{ index: 0, finish_reason: 'stop' }],
    })
  })

  it('are cut at their bound, and redacted before', async () => {
    const { gateway } = await start({ on_for: ['*'], max_kilobytes: 1 })
    for (const [length, is_cut] of [
      [1_000, false],
      [1_001, true],
    ] as const) {
      await send(gateway, chat('a'.repeat(length), { max_tokens: 5 }))
      const [, found] = await newest(gateway)
      expect(found).toMatchObject({ input: [{ parts: [{ text: 'a'.repeat(1_000) }] }], is_cut })
    }
    await send(gateway, chat(`${'a '.repeat(495)}4111111111111111`, { max_tokens: 5 }))
    expect(JSON.stringify((await newest(gateway))[1])).not.toContain('4111')
  })

  it('are recorded by the header where the token may decide, and the header is refused elsewhere', async () => {
    const { gateway } = await start({ by_header_for: ['*'] })
    await send(gateway, chat('one'))
    expect((await newest(gateway))[0]).toBe(404)
    gateway.clock.advance(10)
    await send(gateway, chat('two'), { 'x-gatehouse-log-contents': 'on' })
    expect((await newest(gateway))[0]).toBe(200)
    expect(await refusal(await gateway.chat(chat('x'), { headers: { 'x-gatehouse-log-contents': 'yes' } }))).toEqual([
      400,
      'invalid_value',
    ])
    const other = await start({ on_for: ['*'] })
    const headers = { 'x-gatehouse-log-contents': 'off' }
    expect(await refusal(await other.gateway.chat(chat('x'), { headers }))).toEqual([400, 'unsupported_parameter'])
  })

  it('are read by an owner and by the project_admin of the project, by nobody else', async () => {
    const { gateway } = await start({ on_for: ['*'] })
    const ours = await gateway.read('/projects', { json: { name: 'ours' } })
    const theirs = await gateway.read('/projects', { json: { name: 'theirs' } })
    const token = await gateway.read('/tokens', { json: { name: 't', project_id: ours.project_id } })
    await send(gateway, chat('Hello'), { authorization: `Bearer ${token.secret}` })
    const as = async (role: string, project_id?: unknown) => {
      const json = { name: `${role} ${project_id}`, role, ...(project_id ? { project_id } : {}) }
      return (await newest(gateway, (await gateway.read('/admin-tokens', { json })).secret as string))[0]
    }
    expect(await as('owner')).toBe(200)
    expect(await as('project_admin', ours.project_id)).toBe(200)
    expect(await as('project_admin', theirs.project_id)).toBe(404)
    expect(await as('operator')).toBe(403)
    expect(await as('viewer')).toBe(403)
  })

  it('stay readable after a rotation of the key, and not without the key', async () => {
    const first = await start({ on_for: ['*'] })
    await send(first.gateway, chat('Hello'))
    await first.stop()
    const { store_url } = first
    const without = await start({ on_for: ['*'] }, { store_url, contents_key: NEW_KEY })
    expect((await newest(without.gateway))[1]).toMatchObject({ error: { code: 'contents_unreadable' } })
    await without.stop()
    const rotated = await start({ on_for: ['*'] }, { store_url, contents_key: NEW_KEY, contents_key_old: KEY })
    expect((await newest(rotated.gateway))[0]).toBe(200)
  })

  it('are shown by the command line with the key, and the read is recorded', async () => {
    const { gateway, stop, directory } = await start({ on_for: ['*'] })
    await send(gateway, chat('Hello there'))
    const { data } = await gateway.read<{ data: { id: string }[] }>('/requests')
    await stop()
    const environment = { GATEHOUSE_DATA_DIR: directory, GATEHOUSE_CONTENTS_KEY: KEY }
    const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
    expect(await run(['show', data[0]?.id ?? '', '--contents', '--json'], terminal)).toBe(0)
    expect(JSON.parse(printed.out)).toMatchObject({ contents: { input: [{ parts: [{ text: 'Hello there' }] }] } })
    const audit = new Database(join(directory, 'gatehouse.db')).query('select action from audit').all()
    expect(audit).toContainEqual({ action: 'request.read_contents' })
  })

  it('of an end user are exported, and erased with the requests only by --yes', async () => {
    const { gateway, stop, directory } = await start({ on_for: ['*'] })
    await send(gateway, chat('Hello from Ann', { user: 'ann' }))
    await send(gateway, chat('Hello from Bob', { user: 'bob' }))
    await gateway.read('/requests')
    await stop()
    const environment = { GATEHOUSE_DATA_DIR: directory, GATEHOUSE_CONTENTS_KEY: KEY }
    const data = async (...args: string[]) => {
      const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
      expect(await runData([...args, '--json'], terminal)).toBe(0)
      return printed.out
    }
    const exported = (await data('export', '--user', 'ann')).trim().split('\n')
    expect(exported.map((line) => JSON.parse(line))).toMatchObject([
      { end_user: 'ann', contents: { input: [{ parts: [{ text: 'Hello from Ann' }] }] } },
    ])
    expect(JSON.parse(await data('erase', '--user', 'ann'))).toMatchObject({ erased: false, requests: 1 })
    expect(JSON.parse(await data('erase', '--user', 'ann', '--yes'))).toMatchObject({
      erased: true,
      requests: 1,
      contents: 1,
    })
    expect(await data('export', '--user', 'ann')).toBe('')
    expect(await data('export', '--user', 'bob')).toContain('Hello from Bob')
    const audit = new Database(join(directory, 'gatehouse.db')).query('select * from audit').all()
    expect(JSON.stringify(audit)).toContain('end_user.erase')
    expect(JSON.stringify(audit)).not.toContain('"ann"')
  })

  it('need a key in the environment', () => {
    const file = 'request_log: {contents: {on_for: ["*"]}}'
    const load = (environment: Record<string, string>) =>
      loadConfig({ environment, cwd: '/', readFile: () => file }).contents_key
    expect(() => load({})).toThrow('GATEHOUSE_CONTENTS_KEY: is not set')
    expect(() => load({ GATEHOUSE_CONTENTS_KEY: 'short' })).toThrow('found 5 characters, must be 32 random bytes')
    expect(load({ GATEHOUSE_CONTENTS_KEY: KEY })).toBe(KEY)
  })
})
