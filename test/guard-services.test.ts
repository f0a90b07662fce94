/** Guards of kind webhook with a format: what services of other protocols are asked, and what their answers decide. */
import { afterEach, describe, expect, it } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import type { GuardConfig, GuardFormat } from '../src/config/schema/guard-schema.ts'
import { startGateway } from './kit/gateway.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Settings = Omit<GuardConfig, 'kind'>
type Asked = { body: Record<string, unknown>; text: string; headers: Headers }

/** Answers that are no success, as they are. */
const refusal = (status: number, body: unknown) => ({ status, body })
type Refusal = ReturnType<typeof refusal>
const HANGS = 'hangs'

/** The service gives these answers one after another, the last one again and again. */
async function start(settings: Settings, ...answers: unknown[]) {
  const asked: Asked[] = []
  const arrived = Promise.withResolvers<void>()
  const service = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const text = await request.text()
      asked.push({ body: JSON.parse(text), text, headers: request.headers })
      arrived.resolve()
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      if (answer === HANGS) return await new Promise<Response>(() => {})
      const { status, body } =
        answer instanceof Object && 'status' in answer ? (answer as Refusal) : refusal(200, answer)
      return typeof body === 'string' ? new Response(body, { status }) : Response.json(body, { status })
    },
  })
  const vendor = startVendor()
  const url = `http://127.0.0.1:${service.port}/check/arn:aws:x?version=1`
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
  const sent = () =>
    (JSON.parse(vendor.requests.at(-1)?.body ?? '{}').messages ?? []).map((one: { content: string }) => one.content)
  return { gateway, vendor, asked, ask, sent, arrived: arrived.promise, url }
}

const entity = (entity_type: string, start: number, end: number) => ({
  entity_type,
  start,
  end,
  score: 0.85,
  analysis_explanation: null,
})

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

  it('is not believed where an entity is nowhere in the text', async () => {
    for (const [from, to] of [
      [0, 9],
      [-1, 2],
      [3, 3],
      [4, 2],
      [8, 9],
    ] as const) {
      const { ask, gateway } = await start({ ...SETTINGS, action: 'replace' }, [entity('PERSON', from, to)])
      expect((await ask('Ann Lee!')).status).toBe(400)
      expect(gateway.logged()).toContain('guard without a decision')
    }
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
    const { ask, asked } = await start(
      { format: 'azure_text', categories: ['Hate'] },
      answer(2),
      answer(4),
      answer(0, [list]),
    )
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
    const { ask, asked } = await start(
      { format: 'lakera', project: 'project-1' },
      { flagged: false, metadata },
      { flagged: true, metadata },
    )
    expect((await ask('One', 'Two')).status).toBe(200)
    // Of several messages, it screens the last interaction.
    expect(asked[0]?.body).toEqual({ messages: [{ role: 'user', content: 'One\n\nTwo' }], project_id: 'project-1' })
    expect(asked[0]?.headers.get('authorization')).toBe('Bearer k-1')
    expect((await ask('One', 'Two')).status).toBe(400)
  })
})

describe('a signed question to bedrock', () => {
  const aws = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'secret-of-aws', region: 'eu-central-1' }
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

  /** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
  function signatureOf({ text, headers }: Asked, path: string): string {
    const authorization = headers.get('authorization') ?? ''
    const [, date = '', names = ''] = /AKIDEXAMPLE\/(\d{8})\/.*SignedHeaders=([^,]+),/.exec(authorization) ?? []
    const signed = names.split(';').map((name) => `${name}:${headers.get(name)}\n`)
    const canonical = ['POST', path, 'version=1', signed.join(''), names, hashOf(text)].join('\n')
    const scope = `${date}/${aws.region}/bedrock/aws4_request`
    const key = [aws.region, 'bedrock', 'aws4_request'].reduce(hmac, hmac(`AWS4${aws.secret_access_key}`, date))
    return hmac(key, ['AWS4-HMAC-SHA256', headers.get('x-amz-date'), scope, hashOf(canonical)].join('\n')).toString(
      'hex',
    )
  }

  it('has a signature of its body, its address and its time, and never the secret', async () => {
    const settings: Settings = {
      format: 'bedrock',
      key: undefined as never,
      aws: { ...aws, session_token: 'session-1' },
    }
    delete settings.key
    const { ask, asked, gateway } = await start(settings, { action: 'NONE', outputs: [], assessments: [] })
    expect((await ask('Grüße')).status).toBe(200)
    const [question] = asked as [Asked]
    const { headers } = question
    expect(headers.get('authorization')).toContain(`Signature=${signatureOf(question, '/check/arn%3Aaws%3Ax')}`)
    expect(headers.get('x-amz-security-token')).toBe('session-1')
    expect(headers.get('x-amz-date')).toBe(new Date(gateway.clock.now()).toISOString().replace(/[:-]|\.\d{3}/g, ''))
    expect([...headers.values()].join(' ')).not.toContain('secret-of-aws')
    expect((await ask('Hello')).status).toBe(200)
    expect(signatureOf(asked[1] as Asked, '/check/arn%3Aaws%3Ax')).not.toBe(
      signatureOf(question, '/check/arn%3Aaws%3Ax'),
    )
  })
})

/** As the vendors document their answers: one that passes, one that blocks, and how they refuse a question. */
const DOCUMENTED: Record<GuardFormat, { passes: unknown; blocks: unknown; refusals: Refusal[] }> = {
  // https://microsoft.github.io/presidio/api-docs/api-docs.html
  presidio: {
    passes: [],
    blocks: [
      {
        entity_type: 'PERSON',
        start: 0,
        end: 5,
        score: 0.85,
        analysis_explanation: {
          recognizer: 'SpacyRecognizer',
          pattern_name: null,
          pattern: null,
          original_score: 0.85,
          score: 0.85,
          textual_explanation: "Identified as PERSON by Spacy's Named Entity Recognition",
          score_context_improvement: 0,
          supportive_context_word: '',
          validation_result: null,
        },
        recognition_metadata: { recognizer_name: 'SpacyRecognizer' },
      },
    ],
    refusals: [
      refusal(500, { error: 'No matching recognizers were found to serve the request.' }),
      refusal(502, '<html>Bad Gateway</html>'),
    ],
  },
  // https://learn.microsoft.com/rest/api/contentsafety/text-operations/analyze-text
  azure_text: {
    passes: {
      blocklistsMatch: [],
      categoriesAnalysis: ['Hate', 'SelfHarm', 'Sexual', 'Violence'].map((category) => ({ category, severity: 0 })),
    },
    blocks: {
      blocklistsMatch: [{ blocklistName: 'house', blocklistItemId: '1', blocklistItemText: 'x' }],
      categoriesAnalysis: [{ category: 'Hate', severity: 0 }],
    },
    refusals: [
      refusal(400, { error: { code: 'InvalidRequestBody', message: 'Text length is over the limit.', details: [] } }),
      refusal(401, { error: { code: '401', message: 'Access denied due to invalid subscription key.' } }),
      refusal(429, { error: { code: '429', message: 'Requests have exceeded the rate limit. Retry after 1 second.' } }),
    ],
  },
  // https://learn.microsoft.com/azure/ai-services/content-safety/quickstart-jailbreak
  azure_shields: {
    passes: { userPromptAnalysis: { attackDetected: false }, documentsAnalysis: [{ attackDetected: false }] },
    blocks: { userPromptAnalysis: { attackDetected: true }, documentsAnalysis: [] },
    refusals: [refusal(404, { error: { code: '404', message: 'Resource not found' } }), refusal(503, '')],
  },
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html
  bedrock: {
    passes: {
      action: 'NONE',
      actionReason: 'No action.',
      assessments: [{ invocationMetrics: { guardrailProcessingLatency: 241 } }],
      guardrailCoverage: { textCharacters: { guarded: 5, total: 5 } },
      outputs: [],
      usage: { contentPolicyUnits: 1, topicPolicyUnits: 1, wordPolicyUnits: 1 },
    },
    blocks: {
      action: 'GUARDRAIL_INTERVENED',
      actionReason: 'Guardrail blocked.',
      assessments: [
        {
          contentPolicy: {
            filters: [
              { action: 'BLOCKED', confidence: 'HIGH', detected: true, filterStrength: 'HIGH', type: 'PROMPT_ATTACK' },
            ],
          },
        },
      ],
      outputs: [{ text: 'Sorry, the model cannot answer this question.' }],
      usage: { contentPolicyUnits: 1 },
    },
    refusals: [
      refusal(400, { message: '1 validation error detected' }),
      refusal(403, { message: 'User is not authorized to perform: bedrock:ApplyGuardrail' }),
      refusal(429, { message: 'Too many requests' }),
    ],
  },
  // https://docs.lakera.ai/docs/api/guard
  lakera: {
    passes: { flagged: false, metadata: { request_uuid: '8b2b6c1c-9f7a-4f8a-9c2d-8a44ca72e975' } },
    blocks: {
      flagged: true,
      breakdown: [
        { project_id: 'p', policy_id: 'q', detector_id: 'd', detector_type: 'prompt_attack', detected: true },
      ],
      metadata: { request_uuid: '8b2b6c1c-9f7a-4f8a-9c2d-8a44ca72e975' },
    },
    refusals: [refusal(401, { error: { message: 'Invalid API key' } }), refusal(500, { error: 'Internal error' })],
  },
}

describe.each(Object.entries(DOCUMENTED))('a documented answer of %s', (name, { passes, blocks, refusals }) => {
  const format = name as GuardFormat

  it('passes or blocks', async () => {
    const { ask } = await start({ format }, passes, blocks)
    expect((await ask('Hello')).status).toBe(200)
    expect(await ask('Hello')).toMatchObject({ status: 400, body: expect.stringContaining('content_blocked') })
  })

  it.each(['open', 'closed'] as const)(
    'that refuses the question is %s by on_error, and named in the log',
    async (on_error) => {
      const { ask, gateway, sent } = await start({ format, on_error }, ...refusals)
      for (const { status } of refusals) {
        expect((await ask('Hello')).status).toBe(on_error === 'open' ? 200 : 400)
        expect(gateway.logged()).toContain(`"reason":"status ${status}"`)
      }
      expect(sent()).toEqual(on_error === 'open' ? ['Hello'] : [])
    },
  )

  it.each(['open', 'closed'] as const)('that does not come in time is %s by on_error', async (on_error) => {
    const { ask, gateway, arrived } = await start({ format, on_error, timeout_ms: 300 }, HANGS)
    const answer = ask('Hello')
    await arrived
    gateway.clock.advance(301)
    expect((await answer).status).toBe(on_error === 'open' ? 200 : 400)
    expect(gateway.logged()).toContain('"reason":"upstream_timeout"')
  })

  it('is asked for whole characters only', async () => {
    const { ask, asked } = await start({ format }, passes)
    expect((await ask(`\ud83d ${'😀'.repeat(12_000)}`)).status).toBe(200)
    for (const { text } of asked) expect(JSON.stringify(JSON.parse(text))).not.toMatch(/\\ud[89a-f]/)
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
