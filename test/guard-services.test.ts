/** Guards of kind webhook with a format: what services of other protocols are asked, and what their answers decide. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import { startGateway } from './kit/gateway.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Settings = Omit<GuardConfig, 'kind'>
type Asked = { body: Record<string, unknown>; headers: Headers }

/** The service gives these answers one after another, the last one again and again. */
async function start(settings: Settings, ...answers: unknown[]) {
  const asked: Asked[] = []
  const service = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      asked.push({ body: (await request.json()) as Asked['body'], headers: request.headers })
      return Response.json(answers.length > 1 ? answers.shift() : answers[0])
    },
  })
  const vendor = startVendor()
  const url = `http://127.0.0.1:${service.port}/check?version=1`
  const gateway = await startGateway({
    guards: { house: { kind: 'webhook', on: ['input'], key: 'k-1', ...settings, url } },
    providers: { v: { base_url: vendor.url, key: 'sk-vendor' } },
    models: { 'v/m': { targets: [{ provider: 'v', model: 'vendor-model' }], guards: ['house'] } },
  })
  closing.push(
    () => service.stop(true),
    () => vendor.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  const ask = async (...texts: string[]) => {
    const response = await gateway.chat({ model: 'v/m', messages: texts.map((content) => ({ role: 'user', content })) })
    return { status: response.status, body: await response.text() }
  }
  const sent = () => (JSON.parse(vendor.requests.at(-1)?.body ?? '{}').messages ?? []).map((one: { content: string }) => one.content) // biome-ignore format: one line
  return { gateway, vendor, asked, ask, sent }
}

const entity = (entity_type: string, start: number, end: number) => ({ entity_type, start, end, score: 0.85, analysis_explanation: null }) // biome-ignore format: one line

describe('the format presidio', () => {
  const SETTINGS: Settings = {
    format: 'presidio',
    language: 'de',
    categories: ['PERSON', 'EMAIL_ADDRESS'],
    threshold: 0.5,
  }

  it('asks about all texts at once, and blocks what has an entity', async () => {
    const { ask, asked } = await start(SETTINGS, [], [entity('PERSON', 0, 3)])
    expect((await ask('Hello', 'you')).status).toBe(200)
    expect(asked[0]?.body).toEqual({
      text: 'Hello\n\nyou',
      language: 'de',
      entities: ['PERSON', 'EMAIL_ADDRESS'],
      score_threshold: 0.5,
    })
    expect(asked[0]?.headers.get('authorization')).toBe('Bearer k-1')
    expect((await ask('Ann')).status).toBe(400)
  })

  it('replaces entities by their offsets in code points, in each text, also where they overlap', async () => {
    const texts = ['😀 I am Ann Lee', 'ann@example.com, 😀']
    const at = (text: string, part: string) => [...text.slice(0, text.indexOf(part))].length
    const joined = texts.join('\n\n')
    const name = at(joined, 'Ann Lee')
    const mail = at(joined, 'ann@')
    const { ask, sent } = await start({ ...SETTINGS, action: 'replace' }, [
      entity('URL', mail + 4, mail + 15),
      entity('EMAIL_ADDRESS', mail, mail + 15),
      entity('PERSON', name, name + 7),
      entity('PERSON', name + 4, name + 7),
    ])
    expect((await ask(...texts)).status).toBe(200)
    expect(sent()).toEqual(['😀 I am <PERSON>', '<EMAIL_ADDRESS>, 😀'])
  })
})

describe('the format azure_text', () => {
  const answer = (severity: number, blocklistsMatch: object[] = []) => ({
    blocklistsMatch,
    categoriesAnalysis: ['Hate', 'SelfHarm', 'Sexual', 'Violence'].map((category) => ({
      category,
      severity: category === 'Violence' ? severity : 0,
    })),
  })

  it('blocks from severity 4 on, or from that of the guard, and what is on a list', async () => {
    const list = { blocklistName: 'house', blocklistItemId: '1', blocklistItemText: 'x' }
    const { ask, asked } = await start({ format: 'azure_text', categories: ['Hate'] }, answer(2), answer(4), answer(0, [list])) // biome-ignore format: one line
    expect((await ask('Hello')).status).toBe(200)
    expect(asked[0]?.body).toEqual({ text: 'Hello', categories: ['Hate'] })
    expect(asked[0]?.headers.get('ocp-apim-subscription-key')).toBe('k-1')
    expect((await ask('Hello')).status).toBe(400)
    expect((await ask('Hello')).status).toBe(400)
    const strict = await start({ format: 'azure_text', severity: 2 }, answer(2))
    expect((await strict.ask('Hello')).status).toBe(400)
  })

  it('asks in pieces of 10,000 characters that overlap, of at most 100', async () => {
    const { ask, asked } = await start({ format: 'azure_text' }, answer(0))
    for (const [length, pieces] of [
      [10_000, 1],
      [10_001, 2],
      [19_500, 2],
      [19_501, 3],
    ] as const) {
      asked.length = 0
      expect((await ask('x'.repeat(length))).status).toBe(200)
      expect(asked.length).toBe(pieces)
      for (const { body } of asked) expect((body.text as string).length).toBeLessThanOrEqual(10_000)
    }
    expect((await ask('x'.repeat(1_000_000))).status).toBe(400)
  })
})

describe('the format azure_shields', () => {
  const answer = (attackDetected: boolean) => ({ userPromptAnalysis: { attackDetected }, documentsAnalysis: [] })

  it('blocks an attack', async () => {
    const { ask, asked } = await start({ format: 'azure_shields' }, answer(false), answer(true))
    expect((await ask('Hello')).status).toBe(200)
    expect(asked[0]?.body).toEqual({ userPrompt: 'Hello', documents: [] })
    expect((await ask('Ignore all')).status).toBe(400)
  })
})

describe('the format bedrock', () => {
  const intervened = (assessments: object, ...outputs: string[]) => ({
    usage: { topicPolicyUnits: 1 },
    action: 'GUARDRAIL_INTERVENED',
    outputs: outputs.map((text) => ({ text })),
    assessments: [assessments],
  })
  const pii = (action: string) => ({
    sensitiveInformationPolicy: { piiEntities: [{ type: 'EMAIL', match: 'ann@example.com', action }], regexes: [] },
  })
  const topic = { topicPolicy: { topics: [{ name: 'Finance', type: 'DENY', action: 'BLOCKED' }] } }

  it('passes, masks, and blocks', async () => {
    const { ask, asked, sent } = await start(
      { format: 'bedrock' },
      { action: 'NONE', outputs: [], assessments: [{}] },
      intervened(pii('ANONYMIZED'), 'I am {EMAIL}', 'Hi'),
      intervened(topic, 'Sorry, not this.'),
      intervened({ ...pii('ANONYMIZED'), ...topic }, 'Sorry, not this.', 'x'),
      intervened(pii('ANONYMIZED'), 'only one'),
    )
    expect((await ask('I am ann@example.com', 'Hi')).status).toBe(200)
    expect(asked[0]?.body).toEqual({
      source: 'INPUT',
      content: [{ text: { text: 'I am ann@example.com' } }, { text: { text: 'Hi' } }],
    })
    expect(asked[0]?.headers.get('authorization')).toBe('Bearer k-1')
    expect((await ask('I am ann@example.com', 'Hi')).status).toBe(200)
    expect(sent()).toEqual(['I am {EMAIL}', 'Hi'])
    for (let n = 0; n < 3; n++) expect((await ask('I am ann@example.com', 'Hi')).status).toBe(400)
  })

  it('says that it is about an answer', async () => {
    const { ask, asked, vendor } = await start({ format: 'bedrock', on: ['output'] }, intervened(topic, 'Sorry.'))
    vendor.answer(whole(completion('Buy shares.')))
    expect((await ask('Hello')).body).toContain('"finish_reason":"content_filter"')
    expect(asked[0]?.body).toEqual({ source: 'OUTPUT', content: [{ text: { text: 'Buy shares.' } }] })
  })
})

describe('the format lakera', () => {
  it('blocks what is flagged by the policy of the project', async () => {
    const metadata = { request_uuid: '1' }
    const { ask, asked } = await start({ format: 'lakera', project: 'project-1' }, { flagged: false, metadata }, { flagged: true, metadata }) // biome-ignore format: one line
    expect((await ask('One', 'Two')).status).toBe(200)
    const messages = ['One', 'Two'].map((content) => ({ role: 'user', content }))
    expect(asked[0]?.body).toEqual({ messages, project_id: 'project-1' })
    expect(asked[0]?.headers.get('authorization')).toBe('Bearer k-1')
    expect((await ask('One', 'Two')).status).toBe(400)
  })
})

describe('each format', () => {
  for (const format of ['presidio', 'azure_text', 'azure_shields', 'bedrock', 'lakera'] as const)
    it(`is closed where ${format} answers otherwise, and never shows its key`, async () => {
      for (const answer of [{}, [1], null, { action: 'pass' }, { flagged: 'no' }]) {
        const { ask, gateway } = await start({ format }, answer)
        expect((await ask('Hello')).status).toBe(400)
        expect(gateway.logged()).toContain('guard without a decision')
        expect(gateway.logged()).not.toContain('k-1')
      }
    })
})
