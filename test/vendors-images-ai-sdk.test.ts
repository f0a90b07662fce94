/** The vendors of images behind AI SDK packages, each against a loopback vendor that responds in the vendor's own format. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { createLog } from '../src/kit/log.ts'
import type { GeneratedImage, ImageProvider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { createTransport } from '../src/providers/upstream/transport.ts'
import { type ErrorCode, GatewayError } from '../src/spec/error.ts'
import type { ImageOrder } from '../src/spec/image-request.ts'
import { manualClock } from './kit/clock.ts'
import { manualPage } from './kit/manual.ts'
import { providerParts } from './kit/provider-parts.ts'
import { type Answer, hangUp, raw, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'key-canary-of-the-operator'
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const URI = `data:image/png;base64,${PNG}`
const FILE = 'https://files.example/a.png'
const signal = new AbortController().signal

type Json = Record<string, unknown>
type Sent = { path: string; body?: Json; auth?: string }
type Refusal = { title: string; answers: Answer[]; code: ErrorCode; accepted: 'no' | 'open' | 'failed' }

/** One vendor: how an order is encoded, its responses, and its errors. */
type Case = {
  kind: ProviderKind
  model: string
  base: string
  config?: Partial<ProviderConfig>
  /** A generation with dimensions, a seed and an option of the vendor. */
  order: Partial<ImageOrder>
  sent: Sent[]
  /** Its responses to that, in order; its own URLs are below `origin`. */
  answers(origin: string): Answer[]
  images: GeneratedImage[]
  usage?: Json
  edit?: { order: Partial<ImageOrder>; sent: Sent; answers(origin: string): Answer[] }
  /** Unsupported orders, and the field of the error. */
  refuses: [order: Partial<ImageOrder>, param: string][]
  refusals: Refusal[]
}

const respond = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  whole(body, { status, headers })
const bearer = `Bearer ${KEY}`
const unseen = { unseen: { more: [1] } }

const GEMINI = (...parts: Json[]) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0, unseen: 1 }],
  usageMetadata: {
    promptTokenCount: 5,
    candidatesTokenCount: 1290,
    totalTokenCount: 1300,
    thoughtsTokenCount: 5,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 5 }],
  },
  modelVersion: 'gemini-2.5-flash-image',
  responseId: 'r1',
  ...unseen,
})
const inline = (data: string, more: Json = {}) => ({ inlineData: { mimeType: 'image/png', data }, ...more })
const geminiBody = (more: Json[] = []) => ({
  contents: [{ role: 'user', parts: [{ text: 'A kite' }, ...more] }],
  generationConfig: expect.objectContaining({
    seed: 7,
    responseModalities: ['IMAGE'],
    imageConfig: { aspectRatio: '2:3' },
  }),
})
const geminiError = (code: number, status: string, message = 'Wrong thing') => ({ error: { code, message, status } })
const GOOGLE_REFUSALS: Refusal[] = [
  {
    title: 'a wrong field',
    answers: [respond(400, geminiError(400, 'INVALID_ARGUMENT'))],
    code: 'upstream_invalid_request',
    accepted: 'no',
  },
  {
    title: 'a bad key',
    answers: [respond(400, geminiError(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.'))],
    code: 'upstream_auth',
    accepted: 'no',
  },
  {
    title: 'a prompt that its filter blocks',
    answers: [respond(200, { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: {} })],
    code: 'content_policy_violation',
    accepted: 'failed',
  },
  {
    title: 'an image that its filter removes',
    answers: [
      respond(200, { candidates: [{ finishReason: 'IMAGE_SAFETY', finishMessage: 'Unable to show the image.' }] }),
    ],
    code: 'content_policy_violation',
    accepted: 'failed',
  },
  {
    title: 'text instead of an image',
    answers: [respond(200, GEMINI({ text: 'I cannot draw.' }))],
    code: 'bad_upstream_response',
    accepted: 'failed',
  },
  {
    title: 'too many requests',
    answers: [respond(429, geminiError(429, 'RESOURCE_EXHAUSTED'), { 'retry-after': '7' })],
    code: 'rate_limit_exceeded',
    accepted: 'no',
  },
]

const GOOGLE: Case = {
  kind: 'google',
  model: 'gemini-2.5-flash-image',
  base: '/v1beta',
  order: { size: '1024x1536', seed: 7 },
  sent: [{ path: '/v1beta/models/gemini-2.5-flash-image:generateContent', auth: KEY, body: geminiBody() }],
  answers: () => [respond(200, GEMINI(inline('AAAA', { thought: true }), { text: 'Here it is' }, inline(PNG)))],
  images: [{ base64: PNG }],
  usage: {
    input_tokens: 5,
    output_tokens: 1295,
    total_tokens: 1300,
    input_tokens_details: { text_tokens: 5, image_tokens: 0 },
  },
  edit: {
    order: { images: [URI], aspect_ratio: '2:3', seed: 7 },
    sent: {
      path: '/v1beta/models/gemini-2.5-flash-image:generateContent',
      body: geminiBody([{ inlineData: { mimeType: 'image/png', data: PNG } }]),
    },
    answers: () => [respond(200, GEMINI(inline(PNG)))],
  },
  refuses: [
    [{ size: '1792x1024' }, 'size'],
    [{ aspect_ratio: '7:4' }, 'aspect_ratio'],
    [{ negative_prompt: 'rain' }, 'negative_prompt'],
    [{ background: 'transparent' }, 'background'],
    [{ operation: 'edit', images: [URI], mask: URI }, 'mask'],
    [{ output_format: 'webp' }, 'output_format'],
  ],
  refusals: GOOGLE_REFUSALS,
}

const VERTEX_PATH = '/v1/publishers/google'
const VERTEX: Case = {
  ...GOOGLE,
  kind: 'google-vertex',
  base: VERTEX_PATH,
  sent: [{ path: `${VERTEX_PATH}/models/gemini-2.5-flash-image:generateContent`, auth: KEY, body: geminiBody() }],
  edit: {
    order: { images: [URI], aspect_ratio: '2:3', seed: 7 },
    sent: {
      path: `${VERTEX_PATH}/models/gemini-2.5-flash-image:generateContent`,
      body: geminiBody([{ inlineData: { mimeType: 'image/png', data: PNG } }]),
    },
    answers: () => [respond(200, GEMINI(inline(PNG)))],
  },
}

const NOVA = '/model/amazon.nova-canvas-v1%3A0/invoke'
const BEDROCK: Case = {
  kind: 'amazon-bedrock',
  model: 'amazon.nova-canvas-v1:0',
  base: '',
  order: {
    size: '1024x512',
    seed: 7,
    quality: 'high',
    negative_prompt: 'rain',
    n: 2,
    metadata: { 'amazon-bedrock': { cfgScale: 6 } },
  },
  sent: [
    {
      path: NOVA,
      auth: bearer,
      body: {
        taskType: 'TEXT_IMAGE',
        textToImageParams: { text: 'A kite', negativeText: 'rain' },
        imageGenerationConfig: {
          width: 1024,
          height: 512,
          seed: 7,
          numberOfImages: 2,
          quality: 'premium',
          cfgScale: 6,
        },
      },
    },
  ],
  answers: () => [respond(200, { images: [PNG, 'AAAA'], error: null, ...unseen })],
  images: [{ base64: PNG }, { base64: 'AAAA' }],
  edit: {
    order: { images: [URI, URI] },
    sent: {
      path: NOVA,
      body: {
        taskType: 'IMAGE_VARIATION',
        imageVariationParams: { images: [PNG, PNG], text: 'A kite' },
        imageGenerationConfig: { numberOfImages: 1 },
      },
    },
    answers: () => [respond(200, { images: [PNG] })],
  },
  refuses: [
    [{ operation: 'edit', images: Array(6).fill(URI) }, 'image'],
    [{ output_format: 'webp' }, 'output_format'],
  ],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(400, { message: 'Malformed input request: width' })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'refused content',
      answers: [respond(400, { message: 'This request has been blocked by our content filters.' })],
      code: 'content_policy_violation',
      accepted: 'no',
    },
    {
      title: 'images that its filter removes',
      answers: [
        respond(200, { images: [], error: 'All of the generated images have been blocked by our content filters.' }),
      ],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    { title: 'no image', answers: [respond(200, { images: [] })], code: 'bad_upstream_response', accepted: 'failed' },
    {
      title: 'a bad key',
      answers: [respond(403, { message: 'not authorized' })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    {
      title: 'too many requests',
      answers: [respond(429, { message: 'slow down' })],
      code: 'rate_limit_exceeded',
      accepted: 'no',
    },
  ],
}

const FAL: Case = {
  kind: 'fal',
  model: 'fal-ai/flux/dev',
  base: '',
  order: { size: '1024x512', seed: 7, output_format: 'png', metadata: { fal: { num_inference_steps: 4 } } },
  sent: [
    {
      path: '/fal-ai/flux/dev',
      auth: `Key ${KEY}`,
      body: {
        prompt: 'A kite',
        seed: 7,
        image_size: { width: 1024, height: 512 },
        num_images: 1,
        output_format: 'png',
        num_inference_steps: 4,
      },
    },
  ],
  answers: () => [
    respond(200, {
      images: [{ url: FILE, width: 1024, height: 512, content_type: 'image/png' }],
      timings: { inference: 1 },
      seed: 7,
      has_nsfw_concepts: [false],
      prompt: 'A kite',
      ...unseen,
    }),
  ],
  images: [{ url: FILE }],
  edit: {
    order: { images: [URI, FILE] },
    sent: {
      path: '/fal-ai/flux/dev',
      body: { prompt: 'A kite', num_images: 1, image_urls: [URI, FILE] },
    },
    answers: () => [respond(200, { image: { url: FILE } })],
  },
  refuses: [[{ background: 'transparent' }, 'background']],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(422, { detail: [{ loc: ['body', 'image_size'], msg: 'wrong', type: 'value_error' }] })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'refused content',
      answers: [
        respond(422, { detail: [{ loc: ['body', 'prompt'], msg: 'flagged', type: 'content_policy_violation' }] }),
      ],
      code: 'content_policy_violation',
      accepted: 'no',
    },
    {
      title: 'an image that its filter blacked out',
      answers: [respond(200, { images: [{ url: FILE }], has_nsfw_concepts: [true] })],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    { title: 'no image', answers: [respond(200, { images: [] })], code: 'bad_upstream_response', accepted: 'failed' },
    {
      title: 'a bad key',
      answers: [respond(401, { detail: 'Authentication is required' })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    {
      title: 'no credit',
      answers: [respond(403, { detail: 'User is locked. Reason: Exhausted balance.' })],
      code: 'no_available_channel',
      accepted: 'no',
    },
    {
      title: 'a failure',
      answers: [respond(500, { detail: 'Internal' })],
      code: 'bad_upstream_response',
      accepted: 'open',
    },
    { title: 'a timeout of a proxy', answers: [respond(504, 'gone')], code: 'upstream_timeout', accepted: 'open' },
  ],
}

const prediction = (origin: string, more: Json) => ({
  id: 'p1',
  status: 'starting',
  input: {},
  output: null,
  error: null,
  urls: { get: `${origin}/v1/predictions/p1`, cancel: `${origin}/v1/predictions/p1/cancel` },
  ...unseen,
  ...more,
})
const REPLICATE: Case = {
  kind: 'replicate',
  model: 'black-forest-labs/flux-schnell',
  base: '/v1',
  order: { size: '1024x576', seed: 7, output_format: 'jpeg', metadata: { replicate: { go_fast: true } } },
  sent: [
    {
      path: '/v1/models/black-forest-labs/flux-schnell/predictions',
      auth: bearer,
      body: {
        input: { prompt: 'A kite', aspect_ratio: '16:9', seed: 7, num_outputs: 1, output_format: 'jpg', go_fast: true },
      },
    },
    { path: '/v1/predictions/p1', auth: bearer },
  ],
  answers: (origin) => [
    respond(201, prediction(origin, {})),
    respond(200, prediction(origin, { status: 'succeeded', output: [FILE] })),
  ],
  images: [{ url: FILE }],
  edit: {
    order: { images: [FILE] },
    sent: {
      path: '/v1/models/black-forest-labs/flux-schnell/predictions',
      body: { input: { prompt: 'A kite', num_outputs: 1, image: FILE } },
    },
    answers: (origin) => [respond(201, prediction(origin, { status: 'succeeded', output: FILE }))],
  },
  refuses: [[{ operation: 'edit', images: [URI, URI] }, 'image']],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(422, { detail: 'input: wrong' })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'refused content',
      answers: [
        respond(
          201,
          prediction('https://api.replicate.com', { status: 'failed', error: 'NSFW content detected (E005)' }),
        ),
      ],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    {
      title: 'a failure in its work',
      answers: [
        respond(201, prediction('https://api.replicate.com', { status: 'failed', error: 'CUDA out of memory' })),
      ],
      code: 'bad_upstream_response',
      accepted: 'failed',
    },
    {
      title: 'no image',
      answers: [respond(201, prediction('https://api.replicate.com', { status: 'succeeded', output: [] }))],
      code: 'bad_upstream_response',
      accepted: 'failed',
    },
    {
      title: 'a bad key',
      answers: [respond(401, { detail: 'Unauthenticated' })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    {
      title: 'no credit',
      answers: [respond(402, { detail: 'Insufficient credit' })],
      code: 'no_available_channel',
      accepted: 'no',
    },
    {
      title: 'too many requests',
      answers: [respond(429, { detail: 'Throttled' }, { 'retry-after': '7' })],
      code: 'rate_limit_exceeded',
      accepted: 'no',
    },
  ],
}

const bflStarted = (origin: string) =>
  respond(200, { id: 'b1', polling_url: `${origin}/v1/get_result?id=b1`, ...unseen })
const bflReady = () =>
  respond(200, {
    id: 'b1',
    status: 'Ready',
    result: { sample: FILE, seed: 7, prompt: 'A kite' },
    progress: null,
    ...unseen,
  })
const BFL: Case = {
  kind: 'black-forest-labs',
  model: 'flux-kontext-pro',
  base: '/v1',
  order: {
    aspect_ratio: '16:9',
    seed: 7,
    output_format: 'png',
    metadata: { 'black-forest-labs': { safetyTolerance: 2 } },
  },
  sent: [
    {
      path: '/v1/flux-kontext-pro',
      auth: KEY,
      body: { prompt: 'A kite', seed: 7, aspect_ratio: '16:9', output_format: 'png', safety_tolerance: 2 },
    },
    { path: '/v1/get_result?id=b1', auth: KEY },
  ],
  answers: (origin) => [bflStarted(origin), bflReady()],
  images: [{ url: FILE }],
  edit: {
    order: { images: [URI, FILE] },
    sent: { path: '/v1/flux-kontext-pro', body: { prompt: 'A kite', input_image: PNG, input_image_2: FILE } },
    answers: (origin) => [bflStarted(origin), bflReady()],
  },
  refuses: [
    [{ operation: 'edit', images: [URI], mask: URI }, 'mask'],
    [{ negative_prompt: 'rain' }, 'negative_prompt'],
  ],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(422, { detail: [{ loc: ['body', 'x'], msg: 'wrong' }] })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'a request that is moderated',
      answers: [
        bflStarted('https://api.bfl.ai'),
        respond(200, {
          id: 'b1',
          status: 'Request Moderated',
          result: null,
          details: { 'Moderation Reasons': ['Violence'] },
        }),
      ],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    {
      title: 'content that is moderated',
      answers: [
        bflStarted('https://api.bfl.ai'),
        respond(200, { id: 'b1', status: 'Content Moderated', result: null }),
      ],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    {
      title: 'a failure in its work',
      answers: [bflStarted('https://api.bfl.ai'), respond(200, { id: 'b1', status: 'Error', result: null })],
      code: 'bad_upstream_response',
      accepted: 'failed',
    },
    {
      title: 'a task that it no longer knows',
      answers: [bflStarted('https://api.bfl.ai'), respond(404, { status: 'Task not found' })],
      code: 'bad_upstream_response',
      accepted: 'open',
    },
    {
      title: 'a bad key',
      answers: [respond(403, { detail: 'Not authenticated' })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    {
      title: 'no credit',
      answers: [respond(402, { detail: 'Insufficient credits' })],
      code: 'no_available_channel',
      accepted: 'no',
    },
    {
      title: 'a response without an order id',
      answers: [respond(200, {})],
      code: 'bad_upstream_response',
      accepted: 'open',
    },
  ],
}

const TOGETHERAI: Case = {
  kind: 'togetherai',
  model: 'black-forest-labs/FLUX.1-schnell',
  base: '/v1',
  order: { aspect_ratio: '16:9', seed: 7, negative_prompt: 'rain', metadata: { togetherai: { steps: 4 } } },
  sent: [
    {
      path: '/v1/images/generations',
      auth: bearer,
      body: {
        model: 'black-forest-labs/FLUX.1-schnell',
        prompt: 'A kite',
        seed: 7,
        width: 1376,
        height: 768,
        response_format: 'base64',
        negative_prompt: 'rain',
        steps: 4,
      },
    },
  ],
  answers: () => [
    respond(200, {
      id: 't1',
      model: 'm',
      object: 'list',
      data: [{ index: 0, b64_json: PNG, type: 'b64_json' }],
      ...unseen,
    }),
  ],
  images: [{ base64: PNG }],
  edit: {
    order: { images: [FILE] },
    sent: {
      path: '/v1/images/generations',
      body: { model: 'black-forest-labs/FLUX.1-schnell', prompt: 'A kite', image_url: FILE, response_format: 'base64' },
    },
    answers: () => [respond(200, { data: [{ index: 0, url: FILE }] })],
  },
  refuses: [
    [{ operation: 'edit', images: [URI], mask: URI }, 'mask'],
    [{ operation: 'edit', images: [URI, URI] }, 'image'],
  ],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(400, { error: { message: 'steps must be between 1 and 4', type: 'invalid_request_error' } })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'refused content',
      answers: [respond(422, { error: { message: 'NSFW content was found in the image' } })],
      code: 'content_policy_violation',
      accepted: 'no',
    },
    { title: 'no image', answers: [respond(200, { data: [] })], code: 'bad_upstream_response', accepted: 'failed' },
    {
      title: 'a bad key',
      answers: [respond(401, { error: { message: 'Invalid API key provided', code: 'invalid_api_key' } })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    {
      title: 'an overload',
      answers: [respond(503, { error: { message: 'busy' } })],
      code: 'server_is_overloaded',
      accepted: 'open',
    },
  ],
}

const FIREWORKS_FLUX = 'accounts/fireworks/models/flux-1-schnell-fp8'
const FIREWORKS: Case = {
  kind: 'fireworks',
  model: FIREWORKS_FLUX,
  base: '/inference/v1',
  order: { aspect_ratio: '16:9', seed: 7, metadata: { fireworks: { num_inference_steps: 4 } } },
  sent: [
    {
      path: `/inference/v1/workflows/${FIREWORKS_FLUX}/text_to_image`,
      auth: bearer,
      body: { prompt: 'A kite', aspect_ratio: '16:9', seed: 7, samples: 1, num_inference_steps: 4 },
    },
  ],
  answers: () => [respond(200, { id: 'f1', base64: [URI], finishReason: 'SUCCESS', seed: 7 })],
  images: [{ base64: PNG }],
  refuses: [
    [{ operation: 'edit', images: [URI] }, 'image'],
    [{ aspect_ratio: '7:4' }, 'aspect_ratio'],
  ],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(400, { error: { object: 'error', type: 'invalid_request_error', message: 'wrong' } })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'content that is filtered',
      answers: [respond(200, { base64: [], finishReason: 'CONTENT_FILTERED', seed: 1 })],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    {
      title: 'a bad key',
      answers: [respond(401, { error: { message: 'unauthorized' } })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    { title: 'an overload', answers: [respond(503, 'busy')], code: 'server_is_overloaded', accepted: 'open' },
  ],
}

const XAI: Case = {
  kind: 'xai',
  model: 'grok-imagine-image',
  base: '/v1',
  order: { aspect_ratio: '16:9', quality: 'high', user: 'u', n: 2, metadata: { xai: { resolution: '2k' } } },
  sent: [
    {
      path: '/v1/images/generations',
      auth: bearer,
      body: {
        model: 'grok-imagine-image',
        prompt: 'A kite',
        n: 2,
        response_format: 'b64_json',
        aspect_ratio: '16:9',
        quality: 'high',
        user: 'u',
        resolution: '2k',
      },
    },
  ],
  answers: () => [
    respond(200, {
      data: [
        { b64_json: PNG, revised_prompt: 'A red kite', respect_moderation: true },
        { url: FILE, unseen: 1 },
        { b64_json: 'AAAA', respect_moderation: false },
      ],
      usage: { cost_in_usd_ticks: 200 },
      ...unseen,
    }),
  ],
  images: [{ base64: PNG, revised_prompt: 'A red kite' }, { url: FILE }],
  edit: {
    order: { images: [URI, FILE] },
    sent: {
      path: '/v1/images/edits',
      body: {
        model: 'grok-imagine-image',
        prompt: 'A kite',
        n: 1,
        response_format: 'b64_json',
        images: [
          { url: URI, type: 'image_url' },
          { url: FILE, type: 'image_url' },
        ],
      },
    },
    answers: () => [respond(200, { data: [{ b64_json: PNG }] })],
  },
  refuses: [
    [{ size: '1024x1000' }, 'size'],
    [{ operation: 'edit', images: [URI], mask: URI }, 'mask'],
    [{ operation: 'edit', images: Array(4).fill(URI) }, 'image'],
  ],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(400, { code: 'Client specified an invalid argument', error: 'Unsupported ratio' })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'images that moderation removes',
      answers: [respond(200, { data: [{ url: '', respect_moderation: false }] })],
      code: 'content_policy_violation',
      accepted: 'failed',
    },
    {
      title: 'a bad key',
      answers: [respond(400, { code: 'x', error: 'Incorrect API key provided: ab***cd.' })],
      code: 'upstream_auth',
      accepted: 'no',
    },
    { title: 'no image', answers: [respond(200, { data: [] })], code: 'bad_upstream_response', accepted: 'failed' },
    {
      title: 'too many requests',
      answers: [respond(429, { error: 'slow' }, { 'retry-after': '7' })],
      code: 'rate_limit_exceeded',
      accepted: 'no',
    },
  ],
}

const dream = (more: Json) =>
  respond(200, { id: 'l1', state: 'queued', failure_reason: null, assets: null, ...unseen, ...more })
const LUMA: Case = {
  kind: 'luma',
  model: 'photon-1',
  base: '/dream-machine/v1',
  order: { aspect_ratio: '16:9', output_format: 'png' },
  sent: [
    {
      path: '/dream-machine/v1/generations/image',
      auth: bearer,
      body: { prompt: 'A kite', aspect_ratio: '16:9', model: 'photon-1', format: 'png' },
    },
    { path: '/dream-machine/v1/generations/l1', auth: bearer },
  ],
  answers: () => [dream({}), dream({ state: 'completed', assets: { image: FILE } })],
  images: [{ url: FILE }],
  edit: {
    order: { images: [FILE] },
    sent: {
      path: '/dream-machine/v1/generations/image',
      body: { prompt: 'A kite', model: 'photon-1', modify_image: { url: FILE, weight: 1 } },
    },
    answers: () => [dream({}), dream({ state: 'completed', assets: { image: FILE } })],
  },
  refuses: [
    [{ operation: 'edit', images: [URI] }, 'image'],
    [{ operation: 'edit', images: [FILE], mask: FILE }, 'mask'],
    [{ size: '1792x1024' }, 'size'],
  ],
  refusals: [
    {
      title: 'a wrong field',
      answers: [respond(400, { detail: 'Invalid model' })],
      code: 'upstream_invalid_request',
      accepted: 'no',
    },
    {
      title: 'refused content',
      answers: [respond(400, { detail: 'The prompt was not allowed by our moderation' })],
      code: 'content_policy_violation',
      accepted: 'no',
    },
    {
      title: 'a failure in its work',
      answers: [dream({}), dream({ state: 'failed', failure_reason: 'No GPU' })],
      code: 'bad_upstream_response',
      accepted: 'failed',
    },
    {
      title: 'no image',
      answers: [dream({}), dream({ state: 'completed', assets: {} })],
      code: 'bad_upstream_response',
      accepted: 'failed',
    },
    {
      title: 'a bad key',
      answers: [respond(401, { detail: 'Invalid API key' })],
      code: 'upstream_auth',
      accepted: 'no',
    },
  ],
}

const CASES = [GOOGLE, VERTEX, BEDROCK, FAL, REPLICATE, BFL, TOGETHERAI, FIREWORKS, XAI, LUMA]

/** A file as it is, which text would spoil. */
function file(base64: string, content_type: string): Answer {
  const bytes = Buffer.from(base64, 'base64')
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${content_type}\r\ncontent-length: ${bytes.length}\r\n\r\n`
  return raw(Buffer.concat([Buffer.from(head), bytes]))
}

const started: Vendor[] = []
afterEach(async () => {
  for (const vendor of started.splice(0)) await vendor.stop()
})

function open(given: Case, answers: (origin: string) => Answer[], config: Partial<ProviderConfig> = {}) {
  const vendor = startVendor()
  started.push(vendor)
  vendor.answer(...answers(vendor.origin))
  const parts = providerParts({
    kind: given.kind,
    base_url: vendor.origin + given.base,
    key: KEY,
    ...given.config,
    ...config,
  })
  const images = createProvider(parts).images as ImageProvider
  const order = (more: Partial<ImageOrder>): ImageOrder => ({
    model: 'acme/m',
    operation: more.images ? 'edit' : 'generate',
    prompt: 'A kite',
    n: 1,
    ...more,
  })
  const make = (more: Partial<ImageOrder>, model = given.model) =>
    images.generate({ model, request: order(more), request_id: 'r1' }, signal)
  const fail = async (more: Partial<ImageOrder>, model = given.model) => {
    const error = await make(more, model).then(
      () => new Error('It was generated.'),
      (thrown: unknown) => thrown,
    )
    if (error instanceof GatewayError) return error
    throw error
  }
  return { vendor, images, make, fail, logged: parts.logged }
}

const acceptanceOf = ({ detail }: GatewayError): Refusal['accepted'] =>
  detail.accepted === 'no' ? 'no' : detail.fail_code ? 'failed' : 'open'

describe.each(CASES.map((given) => [given.kind, given] as const))('%s', (_, given) => {
  test("encodes a request in the vendor's format, and decodes its response", async () => {
    const { vendor, make } = open(given, given.answers)
    const { images, usage } = await make(given.order)
    expect(images).toEqual(given.images)
    expect(usage as unknown).toEqual(given.usage)
    expect(vendor.requests.map(({ path }) => path)).toEqual(given.sent.map(({ path }) => path))
    for (const [index, { body, auth }] of given.sent.entries()) {
      const request = vendor.requests[index]
      if (body) expect(request?.json()).toEqual(body)
      if (auth) expect(Object.values(request?.headers ?? {})).toContain(auth)
    }
  })

  const { edit } = given
  if (edit) {
    test('edits the given images', async () => {
      const { vendor, make } = open(given, edit.answers)
      expect((await make(edit.order)).images).toHaveLength(1)
      expect(vendor.requests[0]?.path).toBe(edit.sent.path)
      expect(vendor.requests[0]?.json()).toEqual(edit.sent.body as Json)
    })
  }

  test.each(given.refuses.map(([order, param]) => [param, order] as const))(
    'refuses an unsupported %s by name',
    async (param, order) => {
      const { vendor, fail } = open(given, () => [])
      const error = await fail(order)
      expect(['unsupported_parameter', 'unsupported_value']).toContain(error.code)
      expect([error.detail.param, error.detail.accepted]).toEqual([param, 'no'])
      expect(vendor.requests).toHaveLength(0)
    },
  )

  test.each(given.refusals.map((one) => [one.title, one] as const))(
    'maps the error response %s',
    async (_, { answers, code, accepted }) => {
      const { vendor, fail, logged } = open(given, () => [])
      for (const answer of answers) {
        vendor.answer((wire) =>
          answer({
            ...wire,
            write: (bytes) => wire.write(rehomed(bytes, vendor.origin)),
          }),
        )
      }
      const error = await fail({ ...given.order, n: 1 })
      expect([error.code, acceptanceOf(error)]).toEqual([code, accepted])
      if (code === 'rate_limit_exceeded' && given.kind !== 'amazon-bedrock') expect(error.detail.retry_after).toBe(7)
      expect(error.message + logged()).not.toContain(KEY)
    },
  )

  test.each([
    ['that hangs up', hangUp()],
    ['that tears the connection', reset()],
    ['that answers with a web page', whole('<html>', { headers: { 'content-type': 'text/html' } })],
  ])('leaves acceptance in doubt after %s', async (_, answer) => {
    const { fail } = open(given, () => [answer])
    const error = await fail({ ...given.order, n: 1 })
    expect([error.status, acceptanceOf(error)]).toEqual([502, 'open'])
  })

  test('reports an order as not accepted when nothing listens', async () => {
    const { vendor, fail } = open(given, () => [])
    await vendor.stop()
    const error = await fail(given.order)
    expect([error.code, error.detail.accepted]).toEqual(['upstream_unreachable', 'no'])
  })
})

/** A response for the vendor's own base URL, as the vendor on loopback sends it. */
function rehomed(bytes: string | Uint8Array, origin: string): string | Uint8Array {
  if (typeof bytes !== 'string') return bytes
  const [head = '', body = ''] = bytes.split('\r\n\r\n')
  if (!/api\.(bfl\.ai|replicate\.com)/.test(body)) return bytes
  const moved = body.replaceAll(/https:\/\/api\.(bfl\.ai|replicate\.com)/g, origin)
  return `${head.replace(/content-length: \d+/, `content-length: ${Buffer.byteLength(moved)}`)}\r\n\r\n${moved}`
}

describe('several images of a vendor that generates one in a call', () => {
  const one = (png: string) => respond(200, GEMINI(inline(png)))

  test('need as many calls, joined in order with the sum of their usage, each with its own seed', async () => {
    const { vendor, make } = open(GOOGLE, () => [])
    vendor.otherwise((wire) => {
      const { generationConfig } = wire.request.json() as { generationConfig: { seed: number } }
      return one(Buffer.from([generationConfig.seed]).toString('base64'))(wire)
    })
    const { images, usage } = await make({ n: 6, seed: 7 })
    const seeds = images.map((image) => ('base64' in image ? Buffer.from(image.base64, 'base64')[0] : undefined))
    expect(seeds).toEqual([7, 8, 9, 10, 11, 12])
    expect(usage?.total_tokens).toBe(6 * 1300)
    expect(vendor.requests).toHaveLength(6)
  })

  test('are not accepted when all calls are refused, and no further calls are made', async () => {
    const { vendor, fail } = open(GOOGLE, () => [])
    vendor.otherwise(respond(400, geminiError(400, 'INVALID_ARGUMENT')))
    const error = await fail({ n: 6 })
    expect([error.code, acceptanceOf(error)]).toEqual(['upstream_invalid_request', 'no'])
    expect(vendor.requests).toHaveLength(4)
  })

  test('fail as accepted when one call is refused', async () => {
    const { fail } = open(GOOGLE, () => [one(PNG), respond(429, geminiError(429, 'RESOURCE_EXHAUSTED'))])
    const error = await fail({ n: 2 })
    expect([error.code, error.detail.accepted, error.detail.fail_code]).toEqual([
      'bad_upstream_response',
      undefined,
      'upstream_error',
    ])
    // A client that repeats the request would pay for the first image again.
    expect([error.detail.retry, error.message.includes('may have been charged')]).toEqual([false, true])
  })

  test('are in doubt when the connection of one call breaks', async () => {
    const { fail } = open(GOOGLE, () => [respond(400, geminiError(400, 'INVALID_ARGUMENT')), hangUp()])
    expect(acceptanceOf(await fail({ n: 2 }))).toBe('open')
  })

  test('need one call of a vendor that generates five', async () => {
    const { vendor, make } = open(BEDROCK, () => [])
    vendor.otherwise((wire) => {
      const { imageGenerationConfig } = wire.request.json() as { imageGenerationConfig: { numberOfImages: number } }
      return respond(200, { images: Array(imageGenerationConfig.numberOfImages).fill(PNG) })(wire)
    })
    expect((await make({ n: 7 })).images).toHaveLength(7)
    const bodies = vendor.requests.map(
      (request) => (request.json() as { imageGenerationConfig: Json }).imageGenerationConfig,
    )
    expect(bodies.map(({ numberOfImages }) => numberOfImages).sort()).toEqual([2, 5])
  })
})

describe('differences between models and vendors', () => {
  /** Left half transparent. */
  async function mask(): Promise<string> {
    const canvas = createCanvas(4, 2)
    canvas.getContext('2d').fillRect(2, 0, 2, 2)
    return `data:image/png;base64,${canvas.encodeSync('png').toString('base64')}`
  }
  async function pixelsOf(data: unknown): Promise<number[][]> {
    const image = await loadImage(Buffer.from(String(data).replace(/^data:[^,]*,/, ''), 'base64'))
    const canvas = createCanvas(image.width, image.height)
    const context = canvas.getContext('2d')
    context.drawImage(image, 0, 0)
    return [0, 3].map((x) => [...context.getImageData(x, 0, 1, 1).data])
  }
  const WHITE = [255, 255, 255, 255]
  const BLACK = [0, 0, 0, 255]

  test('a mask is converted to the colours of the vendor: the area to change is white at fal, black at Bedrock', async () => {
    const fal = open(FAL, FAL.answers)
    await fal.make({ images: [URI], mask: await mask() }, 'fal-ai/flux-lora/inpainting')
    expect(await pixelsOf(fal.vendor.requests[0]?.json().mask_url)).toEqual([WHITE, BLACK])
    const bedrock = open(BEDROCK, BEDROCK.answers)
    await bedrock.make({ images: [URI], mask: await mask() })
    const body = bedrock.vendor.requests[0]?.json()
    const painted = body?.inPaintingParams as Json | undefined
    expect([body?.taskType, await pixelsOf(painted?.maskImage)]).toEqual(['INPAINTING', [BLACK, WHITE]])
  })

  test('a mask without transparent pixels stays as it is', async () => {
    const canvas = createCanvas(4, 2)
    const context = canvas.getContext('2d')
    context.fillStyle = 'black'
    context.fillRect(0, 0, 4, 2)
    context.fillStyle = 'white'
    context.fillRect(0, 0, 2, 2)
    const { vendor, make } = open(FAL, FAL.answers)
    await make({ images: [URI], mask: canvas.encodeSync('png').toString('base64') })
    expect(await pixelsOf(vendor.requests[0]?.json().mask_url)).toEqual([WHITE, BLACK])
  })

  test.each([
    ['fal-ai/flux/dev', { aspect_ratio: '16:9' }, { image_size: { width: 1376, height: 768 } }],
    ['fal-ai/flux-pro/kontext', { size: '1024x1024' }, { aspect_ratio: '1:1' }],
    ['fal-ai/nano-banana/edit', { images: [FILE] }, { image_urls: [FILE] }],
    ['fal-ai/flux/dev/image-to-image', { images: [FILE] }, { image_url: FILE }],
  ])('fal: %s gets its dimensions and images in its own fields', async (model, order, body) => {
    const { vendor, make } = open(FAL, FAL.answers)
    await make(order, model)
    expect(vendor.requests[0]?.json()).toMatchObject(body)
  })

  test.each([
    ['stability-ai/sdxl:abc', { aspect_ratio: '1:1' }, { version: 'abc', input: { width: 1024, height: 1024 } }],
    ['black-forest-labs/flux-2-pro', { images: [FILE, FILE] }, { input: { input_image: FILE, input_image_2: FILE } }],
  ])('Replicate: %s gets its dimensions and images in its own fields', async (model, order, body) => {
    const { vendor, make } = open(REPLICATE, (origin) => [
      respond(201, prediction(origin, { status: 'succeeded', output: FILE })),
    ])
    await make(order, model)
    expect(vendor.requests[0]?.json()).toMatchObject(body)
  })

  test('Fireworks Kontext is polled by a POST that is not an order', async () => {
    const model = 'accounts/fireworks/models/flux-kontext-pro'
    const { vendor, make } = open(FIREWORKS, () => [
      respond(200, { request_id: 'f1', ...unseen }),
      respond(200, { id: 'f1', status: 'Ready', result: { sample: FILE } }),
    ])
    expect((await make({ images: [URI] }, model)).images).toEqual([{ url: FILE }])
    expect(vendor.requests.map(({ path }) => path)).toEqual([
      `/inference/v1/workflows/${model}`,
      `/inference/v1/workflows/${model}/get_result`,
    ])
    expect(vendor.requests[0]?.json()).toEqual({ prompt: 'A kite', samples: 1, input_image: URI })
  })

  test('Fireworks is asked for JSON; a bare file and the list of its older models are decoded too', async () => {
    const { vendor, make } = open(FIREWORKS, () => [
      file(PNG, 'image/png'),
      respond(200, [{ base64: PNG, finishReason: 'SUCCESS', seed: 1 }]),
    ])
    expect((await make({})).images).toEqual([{ base64: PNG }])
    expect((await make({}, 'accounts/fireworks/models/playground-v2-1024px-aesthetic')).images).toHaveLength(1)
    expect(vendor.requests.map(({ headers }) => headers.accept)).toEqual(['application/json', 'application/json'])
  })

  test('Bedrock generates a variation without a prompt', async () => {
    const { vendor, make, images } = open(BEDROCK, BEDROCK.answers)
    expect(images.operations).toContain('variation')
    await make({ operation: 'variation', prompt: '', images: [URI] })
    expect(vendor.requests[0]?.json()).toMatchObject({
      taskType: 'IMAGE_VARIATION',
      imageVariationParams: { images: [PNG] },
    })
    expect(open(GOOGLE, () => []).images.operations).toEqual(['generate', 'edit'])
  })

  test('fields.drop and fields.rename apply', async () => {
    const config = { fields: { drop: ['negative_prompt'], rename: { quality: 'image_quality' } } }
    const { vendor, make } = open(FAL, FAL.answers, config)
    await make({ negative_prompt: 'rain', quality: 'high' })
    expect(vendor.requests[0]?.json()).toEqual({ prompt: 'A kite', num_images: 1, image_quality: 'high' })
  })

  test('options in metadata cannot override a field, nor set waiting or callbacks', async () => {
    const metadata = {
      fal: { num_images: 9, webhook_url: 'https://x', image_size: 'square', seed: 1, guidanceScale: 3 },
    }
    const { vendor, make } = open(FAL, FAL.answers)
    await make({ size: '512x512', seed: 7, metadata })
    expect(vendor.requests[0]?.json()).toEqual({
      prompt: 'A kite',
      num_images: 1,
      seed: 7,
      image_size: { width: 512, height: 512 },
      guidance_scale: 3,
    })
  })

  test('options that the package rejects are refused by name before anything is sent', async () => {
    const { vendor, fail } = open(FAL, () => [])
    const error = await fail({ metadata: { fal: { guidanceScale: 'much' } } })
    expect([error.code, error.detail.param, error.detail.accepted]).toEqual(['invalid_value', 'metadata', 'no'])
    expect(error.message).toContain('guidanceScale')
    expect(vendor.requests).toHaveLength(0)
  })

  const QUICK = { request_defaults: { pollIntervalMillis: 1 } }

  test.each([
    ['BFL', BFL, bflStarted, bflReady],
    [
      'Replicate',
      REPLICATE,
      (origin: string) => respond(201, prediction(origin, {})),
      (origin: string) => respond(200, prediction(origin, { status: 'succeeded', output: FILE })),
    ],
    ['Luma', LUMA, () => dream({}), () => dream({ state: 'completed', assets: { image: FILE } })],
  ] as const)('%s is polled again after a failed poll, up to five times in a row', async (_, given, begin, end) => {
    const away = [respond(500, {}), respond(429, {}), respond(502, {}), respond(503, 'busy'), respond(200, '<html>')]
    const well = open(given, (origin) => [begin(origin), ...away, end(origin)], QUICK)
    expect((await well.make({})).images).toEqual([{ url: FILE }])
    expect(well.vendor.requests).toHaveLength(7)
    const lost = open(given, (origin) => [begin(origin), ...away, respond(500, {}), end(origin)], QUICK)
    expect(acceptanceOf(await lost.fail({}))).toBe('open')
    expect(lost.vendor.requests).toHaveLength(7)
  })

  test('a model that Google serves by another API is refused before anything is sent', async () => {
    const { vendor, fail } = open(GOOGLE, () => [])
    const { code, detail } = await fail({}, 'imagen-4.0-generate-001')
    expect([code, detail.param, vendor.requests.length]).toEqual(['unsupported_parameter', 'model', 0])
  })

  test('a field value that the package rejects is reported by the name of the field', async () => {
    const { fail } = open(FAL, () => [])
    expect((await fail({ output_format: 'webp' })).detail).toMatchObject({ param: 'output_format', accepted: 'no' })
  })

  test('a URL of another host in a response is not called with the key', async () => {
    const { vendor, fail } = open(BFL, () => [respond(200, { id: 'b1', polling_url: 'https://evil.example/x?id=b1' })])
    const error = await fail({})
    expect([error.code, error.detail.accepted]).toEqual(['bad_upstream_response', undefined])
    expect(vendor.requests).toHaveLength(1)
  })
})

test('the manual has a row for each of these kinds', () => {
  const page = manualPage('images.md')
  const rows = [...page.matchAll(/^\| `([a-z-]+)`[^|]*\| (?:ratio|size|as it is)/gm)].map(([, kind]) => kind)
  expect(rows.sort()).toEqual(['chatcompat', ...CASES.map(({ kind }) => kind)].sort())
})

describe('a preset', () => {
  const providerOf = (config: ProviderConfig) => {
    const clock = manualClock()
    const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
    const transport = createTransport({ clock, log })
    const parts = { timeouts: DEFAULT_TIMEOUTS, transport, clock, log, environment: {}, manual: async () => [] }
    return createProvider({ id: 'acme', config, ...parts })
  }

  test.each([
    ['openai', ['generate', 'edit', 'variation']],
    ['gemini', ['generate', 'edit']],
    ['xai', ['generate', 'edit']],
    ['together', ['generate', 'edit']],
    ['fireworks', ['generate', 'edit']],
    ['fal', ['generate', 'edit']],
    ['anthropic', undefined],
  ])('%s serves images beside its other families', (preset, operations) => {
    expect(providerOf({ preset, key: KEY }).images?.operations as unknown).toEqual(operations)
  })

  test('with a configured base_url serves only the families of that address', async () => {
    const vendor = startVendor(
      respond(200, {
        models: [
          { name: 'models/gemini-2.5-flash', supportedGenerationMethods: ['generateContent'] },
          { name: 'models/gemini-2.5-flash-image', supportedGenerationMethods: ['generateContent'] },
        ],
      }),
    )
    started.push(vendor)
    const provider = providerOf({ preset: 'gemini', key: KEY, base_url: `${vendor.origin}/v1beta` })
    expect(provider.images).toBeUndefined()
    expect(await provider.listModels?.(signal)).toEqual([{ model: 'gemini-2.5-flash' }])
  })
})
