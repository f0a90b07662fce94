/** The ten families of section 1 of the specification, and moderations: each is served as `supported_endpoint_types` states. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import { PROVIDER_KINDS, type ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../src/spec/endpoint-family.ts'
import type { Model } from '../src/spec/model.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { failure, startVendor, type Vendor } from './kit/vendor.ts'

const FAST = { ...DEFAULT_TASKS, poll_seconds: 0.05, slow_poll_seconds: 1 }

type Json = Record<string, unknown>
/** A minimal request of a family, and where its response has the result. */
type Request = {
  path(model: string): string
  body(model: string): Json | FormData
  holds(answer: Json): unknown
  /** The path of the task that it creates. */
  task?: string
}

const TEXT = 'A red kite over the sea.'
const FILM = `${TEXT}\n@sandbox quick=1`
const messages = [{ role: 'user', content: TEXT }]
const first = (value: unknown): Json => ((value as Json[] | undefined)?.[0] ?? {}) as Json
/** Tasks of `generations`, in their envelope; `data` of a finished task has its files. */
const outputs = ({ data }: Json) => first((data as Json).outputs)

const REQUESTS: { [family in EndpointFamily]: Request } = {
  chatcompat: {
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages }),
    holds: ({ choices }) => (first(choices).message as Json).content,
  },
  'chatcompat-response': {
    path: () => '/v1/responses',
    body: (model) => ({ model, input: TEXT }),
    holds: ({ output }) => first(first(output).content).text,
  },
  'messages-compat': {
    path: () => '/v1/messages',
    body: (model) => ({ model, messages, max_tokens: 100 }),
    holds: ({ content }) => first(content).text,
  },
  'contentgen-compat': {
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: TEXT }] }] }),
    holds: ({ candidates }) => first((first(candidates).content as Json).parts).text,
  },
  rerank: {
    path: () => '/v1/rerank',
    body: (model) => ({ model, query: TEXT, documents: [TEXT] }),
    holds: ({ results }) => first(results).relevance_score,
  },
  embeddings: {
    path: () => '/v1/embeddings',
    body: (model) => ({ model, input: TEXT }),
    holds: ({ data }) => first(data).embedding,
  },
  moderations: {
    path: () => '/v1/moderations',
    body: (model) => ({ model, input: TEXT }),
    holds: ({ results }) => first(results).category_scores,
  },
  'audio-speech': {
    path: () => '/v1/audio/speech',
    body: (model) => ({ model, input: TEXT, voice: 'tone' }),
    holds: ({ bytes }) => bytes,
  },
  'audio-transcription': {
    path: () => '/v1/audio/transcriptions',
    body: (model) => {
      const form = new FormData()
      form.append('model', model)
      form.append('file', new File([new Uint8Array([0xff, 0xf3, 0x44, 0xc0])], 'a.mp3'))
      return form
    },
    holds: ({ text }) => text,
  },
  // Sessions themselves: test/realtime.test.ts.
  realtime: {
    path: () => '/v1/realtime/client_secrets',
    body: (model) => ({ session: { type: 'realtime', model } }),
    holds: ({ value }) => value,
  },
  'image-generation': {
    path: () => '/v1/images/generations',
    body: (model) => ({ model, prompt: TEXT, size: '256x256' }),
    holds: ({ data }) => first(data).b64_json,
  },
  'video-generation': {
    path: () => '/v1/video/generations',
    body: (model) => ({ model, prompt: FILM }),
    holds: outputs,
    task: '/v1/video/generations',
  },
  '3d-generation': {
    path: () => '/v1/3d/generations',
    body: (model) => ({ model, prompt: FILM }),
    holds: outputs,
    task: '/v1/3d/generations',
  },
  'chatcompat-video': {
    path: () => '/v1/videos',
    body: (model) => ({ model, prompt: FILM }),
    holds: ({ status }) => status === 'completed',
    task: '/v1/videos',
  },
}

type Answer = { status: number; body: Json; code: unknown }
type Details = { reason?: string }[] | { error_code?: string }

/** Our error code, read from the error format of each family; families of tasks have it in their envelope. */
function codeIn({ error = {}, ...envelope }: Json): unknown {
  const { code, details } = error as { code?: unknown; details?: Details }
  if (Array.isArray(details)) return details[0]?.reason?.toLowerCase()
  return details?.error_code ?? code ?? envelope.code
}

async function ask(gateway: TestGateway, family: EndpointFamily, model: string): Promise<Answer> {
  const { path, body } = REQUESTS[family]
  const sent = body(model)
  const answer = await gateway.call(path(model), sent instanceof FormData ? { form: sent } : { json: sent })
  const isJson = answer.headers.get('content-type')?.includes('json')
  const said: Json = isJson ? await answer.json() : { bytes: (await answer.bytes()).length }
  return { status: answer.status, body: said, code: answer.ok ? undefined : codeIn(said) }
}

async function modelsOf(gateway: TestGateway): Promise<Model[]> {
  return ((await (await gateway.call('/v1/models')).json()) as { data: Model[] }).data
}

/** The body of a task once it has ended. */
async function ended(gateway: TestGateway, task: string, accepted: Json): Promise<Json> {
  const id = (accepted.data as Json | undefined)?.task_id ?? accepted.id
  for (let turn = 0; turn < 20; turn++) {
    const said = (await (await gateway.call(`${task}/${id}?wait=10`)).json()) as Json
    const state = String((said.data as Json | undefined)?.status ?? said.status)
    if (['SUCCESS', 'FAILURE', 'completed', 'failed'].includes(state)) return said
  }
  throw new Error('It never ended.')
}

describe('the sandbox', () => {
  let gateway: TestGateway
  let models: Model[]
  beforeAll(async () => {
    gateway = await startGateway({ tasks: FAST }, { clock: systemClock })
    models = await modelsOf(gateway)
  })
  afterAll(() => gateway[Symbol.asyncDispose]())

  test.each([...ENDPOINT_FAMILIES])(
    'has a model of %s, which responds',
    async (family) => {
      const able = models.filter((one) => one.status === 'active' && one.supported_endpoint_types.includes(family))
      expect(able.length).toBeGreaterThan(0)
      for (const { id } of able) {
        const { status, body } = await ask(gateway, family, id)
        expect([id, status]).toEqual([id, 200])
        const { task, holds } = REQUESTS[family]
        expect(holds(task ? await ended(gateway, task, body) : body)).toBeTruthy()
      }
    },
    120_000,
  )

  test('rejects a request of a family that the model does not declare', async () => {
    for (const { id, status, supported_endpoint_types } of models) {
      for (const family of ENDPOINT_FAMILIES.filter((one) => !supported_endpoint_types.includes(one))) {
        const answer = await ask(gateway, family, id)
        const expected = status === 'retired' ? [410, 'model_retired'] : [400, 'unsupported_endpoint']
        expect([id, family, answer.status, answer.code]).toEqual([id, family, ...expected])
      }
    }
  })

  test('accepts, for each model that is not retired, every family that it declares', async () => {
    for (const { id, status, supported_endpoint_types } of models) {
      expect(supported_endpoint_types).not.toEqual([])
      for (const family of status === 'retired' ? [] : supported_endpoint_types) {
        expect([id, family, (await ask(gateway, family, id)).status]).toEqual([id, family, 200])
      }
    }
  })
})

/** The settings that a kind requires in addition to a URL and a key. */
const NEEDS: { [kind in ProviderKind]?: ProviderConfig } = {
  'amazon-bedrock': { options: { region: 'eu-central-1' } },
  chatcompat: { quirks: { rerank: true } },
}

describe('a provider of each kind', () => {
  let vendor: Vendor
  let gateway: TestGateway
  let models: Model[]
  beforeAll(async () => {
    vendor = startVendor()
    vendor.otherwise(failure(400, { message: 'refused, whatever it is' }))
    const config = (kind: ProviderKind): ProviderConfig =>
      kind === 'sandbox' ? { kind } : { kind, base_url: `${vendor.origin}/v1`, key: 'vendor-key', ...NEEDS[kind] }
    gateway = await startGateway({
      sandbox: false,
      providers: Object.fromEntries(PROVIDER_KINDS.map((kind) => [kind, config(kind)])),
      // Each is configured to serve every family.
      models: Object.fromEntries(PROVIDER_KINDS.map((kind) => [`${kind}/m`, { families: [...ENDPOINT_FAMILIES] }])),
    })
    models = await modelsOf(gateway)
  })
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]()
    await vendor.stop()
  })

  test.each([...PROVIDER_KINDS])('%s: serves the families that it declares and no other', async (kind) => {
    const declared = models.find(({ id }) => id === `${kind}/m`)?.supported_endpoint_types ?? []
    expect(declared).not.toEqual([])
    for (const family of ENDPOINT_FAMILIES) {
      const { status, code } = await ask(gateway, family, `${kind}/m`)
      const isUnsupported = code === 'unsupported_endpoint'
      expect([family, isUnsupported]).toEqual([family, !declared.includes(family)])
      if (isUnsupported) expect(status).toBe(400)
      // A declared family must not turn out to be unsupported by its only target.
      else expect([family, code]).not.toEqual([family, 'no_available_channel'])
    }
  })

  test('every family is served by at least one of them', () => {
    const all = new Set(models.flatMap(({ supported_endpoint_types }) => supported_endpoint_types))
    expect([...all].sort()).toEqual([...ENDPOINT_FAMILIES].sort())
  })
})
