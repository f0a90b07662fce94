/** Guards of projects and tokens: what a project checks, none of its tokens can take off. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import type { Project, Token } from '../src/spec/token.ts'
import { type AdminGateway, startAdminGateway } from './kit/admin.ts'
import { configOf } from './kit/gateway.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const GUARDS: Record<string, GuardConfig> = {
  falcons: { kind: 'patterns', on: ['input'], words: ['falcon'] },
  owls: { kind: 'patterns', on: ['input'], words: ['owl'] },
  tagged: { kind: 'patterns', on: ['input'], words: ['wren'], when: { tags: ['birds'] } },
}
const SETTINGS = { guards: GUARDS, admin_token: 'owner-token-of-the-environment' }
const SECRET = 'sk-declared-0123456789abcdef'

/** A second of silence: 8 kHz, 8 bit, mono. */
const WAVE = Buffer.concat([
  Buffer.from(
    'RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\x1f\0\0',
    'latin1',
  ),
  Buffer.alloc(8_000, 128),
])

type Issued = Token & { secret: string }
type Explained = { plan: { guards: string[] } }

async function start(settings: Parameters<typeof startAdminGateway>[0] = {}) {
  const gateway = await startAdminGateway({ ...SETTINGS, ...settings })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const post = (gateway: AdminGateway, path: string, json: object) => gateway.read<Issued & Project>(path, { json })
const patch = (gateway: AdminGateway, path: string, json: object) =>
  gateway.read<Issued>(path, { method: 'PATCH', json })

async function ask(gateway: AdminGateway, secret: string, content: string, tags = '') {
  const headers = { authorization: `Bearer ${secret}`, ...(tags && { 'x-gatehouse-tags': tags }) }
  const json = { model: 'sandbox/general', messages: [{ role: 'user', content }] }
  const response = await gateway.call('/v1/chat/completions', { json, headers })
  const { error } = (await response.json()) as { error?: { code: string; message: string } }
  return error ? `${error.code}: ${error.message}` : response.status
}
const blockedBy = (name: string) => `content_blocked: The guard "${name}" blocked the content of the request.`

describe('guards of projects and tokens', () => {
  it('check the calls of the token, and of all tokens of the project', async () => {
    const gateway = await start()
    const { project_id } = await post(gateway, '/projects', { name: 'finance', guards: ['falcons'] })
    const token = await post(gateway, '/tokens', { name: 'a', project_id, guards: ['owls', 'owls'] })
    const other = await post(gateway, '/tokens', { name: 'b', project_id })
    const free = await post(gateway, '/tokens', { name: 'c' })
    expect([token.guards, other.guards]).toEqual([['owls'], []])
    expect(await ask(gateway, token.secret, 'a falcon')).toBe(blockedBy('falcons'))
    expect(await ask(gateway, token.secret, 'an owl')).toBe(blockedBy('owls'))
    expect(await ask(gateway, other.secret, 'a falcon')).toBe(blockedBy('falcons'))
    expect(await ask(gateway, other.secret, 'an owl')).toBe(200)
    expect(await ask(gateway, free.secret, 'a falcon and an owl')).toBe(200)
    await patch(gateway, `/tokens/${token.token_id}`, { guards: [] })
    expect(await ask(gateway, token.secret, 'an owl')).toBe(200)
    expect(await ask(gateway, token.secret, 'a falcon')).toBe(blockedBy('falcons'))
    await patch(gateway, `/projects/${project_id}`, { guards: ['owls'] })
    expect(await ask(gateway, token.secret, 'a falcon')).toBe(200)
    expect(await ask(gateway, other.secret, 'an owl')).toBe(blockedBy('owls'))
  })

  it('are declared in the configuration', async () => {
    const gateway = await start({
      projects: { finance: { guards: ['falcons'] } },
      api_tokens: { ci: { secret: SECRET, project: 'finance', guards: ['owls'] } },
    })
    expect(await ask(gateway, SECRET, 'a falcon')).toBe(blockedBy('falcons'))
    expect(await ask(gateway, SECRET, 'an owl')).toBe(blockedBy('owls'))
  })

  it('check the texts of every family', async () => {
    const gateway = await start({ guards: { falcons: { kind: 'patterns', words: ['falcon', 'sandbox'] } } })
    const { secret } = await post(gateway, '/tokens', { name: 'a', guards: ['falcons'] })
    const headers = { authorization: `Bearer ${secret}` }
    const prompt = 'a falcon'
    const form = new FormData()
    for (const [name, value] of Object.entries({ model: 'sandbox/transcription', prompt })) form.append(name, value)
    form.append('file', new File([new Uint8Array(WAVE)], 'a.wav'))
    const calls: [string, { json: object } | { form: FormData }][] = [
      ['/v1/chat/completions', { json: { model: 'sandbox/general', messages: [{ role: 'user', content: prompt }] } }],
      ['/v1/completions', { json: { model: 'sandbox/general', prompt } }],
      ['/v1/embeddings', { json: { model: 'sandbox/embedding', input: prompt } }],
      ['/v1/rerank', { json: { model: 'sandbox/rerank', query: prompt, documents: ['x'] } }],
      ['/v1/moderations', { json: { model: 'sandbox/moderation', input: prompt } }],
      ['/v1/images/generations', { json: { model: 'sandbox/image', prompt } }],
      ['/v1/videos', { json: { model: 'sandbox/text-to-video', prompt } }],
      ['/v1/video/generations', { json: { model: 'sandbox/text-to-video', prompt } }],
      ['/v1/3d/generations', { json: { model: 'sandbox/text-to-3d', prompt } }],
      ['/v1/audio/speech', { json: { model: 'sandbox/speech', input: prompt, voice: 'alloy' } }],
      ['/v1/audio/transcriptions', { form }],
    ]
    for (const [path, body] of calls) {
      const response = await gateway.call(path, { ...body, headers })
      const text = await response.text()
      expect([path, response.status, text]).toEqual([
        path,
        400,
        expect.stringContaining('The guard \\"falcons\\" blocked'),
      ])
    }
  })

  it('must be guards of the configuration, and at most 32', async () => {
    const gateway = await start()
    const { token_id } = await post(gateway, '/tokens', { name: 'a' })
    const { project_id } = await post(gateway, '/projects', { name: 'p' })
    for (const [method, path, more] of [
      ['POST', '/tokens', { name: 'b' }],
      ['POST', '/projects', { name: 'q' }],
      ['PATCH', `/tokens/${token_id}`, {}],
      ['PATCH', `/projects/${project_id}`, {}],
    ] as const) {
      const response = await gateway.admin(path, { method, json: { ...more, guards: ['owls', 'falcon'] } })
      expect([response.status, (await response.json()).error]).toMatchObject([
        400,
        {
          code: 'invalid_value',
          param: 'guards[1]',
          message: 'guards[1]: found "falcon", which is not a guard; known: falcons, owls, tagged.',
        },
      ])
      const many = await gateway.admin(path, { method, json: { ...more, guards: Array(33).fill('owls') } })
      expect([many.status, (await many.json()).error.param]).toEqual([400, 'guards'])
    }
  })

  it('refuse calls where the configuration has lost one, until it is back or taken off', async () => {
    const gateway = await start()
    const { secret, token_id } = await post(gateway, '/tokens', { name: 'a', guards: ['owls'] })
    expect(await ask(gateway, secret, 'Hello')).toBe(200)
    await gateway.instance.reload(configOf({ ...SETTINGS, guards: {} }))
    const gone = 'content_blocked: The guard "owls" of this token or its project is not in the configuration.'
    expect(await ask(gateway, secret, 'Hello')).toBe(gone)
    await gateway.instance.reload(configOf(SETTINGS))
    expect(await ask(gateway, secret, 'an owl')).toBe(blockedBy('owls'))
    await gateway.instance.reload(configOf({ ...SETTINGS, guards: {} }))
    await patch(gateway, `/tokens/${token_id}`, { guards: [] })
    expect(await ask(gateway, secret, 'Hello')).toBe(200)
  })

  it('are explained for a token, with those of its tags', async () => {
    const gateway = await start()
    const { project_id } = await post(gateway, '/projects', { name: 'finance', guards: ['falcons'] })
    const { token_id, secret } = await post(gateway, '/tokens', { name: 'a', project_id, guards: ['owls'] })
    const explain = async (more: object) =>
      (await gateway.read<Explained>('/routing/explain', { json: { model: 'sandbox/general', ...more } })).plan.guards
    expect(await explain({})).toEqual([])
    expect(await explain({ tags: ['birds'] })).toEqual(['tagged'])
    expect(await explain({ token_id })).toEqual(['falcons', 'owls'])
    expect(await explain({ token_id, tags: ['birds'] })).toEqual(['falcons', 'owls', 'tagged'])
    expect(await ask(gateway, secret, 'a wren')).toBe(200)
    expect(await ask(gateway, secret, 'a wren', 'birds')).toBe(blockedBy('tagged'))
    const unknown = await gateway.admin('/routing/explain', { json: { model: 'sandbox/general', token_id: 'tok_x' } })
    expect(unknown.status).toBe(404)
  })
})
