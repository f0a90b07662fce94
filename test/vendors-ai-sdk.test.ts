/** The vendors behind AI SDK packages, each against a loopback vendor that answers in the vendor's own shapes. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_OUTPUTS, DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderConfig, ProviderKind } from '../src/config/schema.ts'
import { createLog } from '../src/kit/log.ts'
import { discoverProviders } from '../src/providers/discover.ts'
import type { RemoteOutput, TaskProgress, VideoCall, VideoProvider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { createTransport } from '../src/providers/transport.ts'
import { type ErrorCode, GatewayError } from '../src/spec/error.ts'
import type { FailCode, Json } from '../src/spec/task.ts'
import type { VideoOrder } from '../src/spec/video-request.ts'
import { manualClock } from './kit/clock.ts'
import { startGateway } from './kit/gateway.ts'
import { type Answer, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'key-canary-of-the-operator'
const SIGNAL = new AbortController().signal
/** The beginning of a PNG, in base64. */
const PNG = 'iVBORw0KGgoAAAANSUhEUg'
const PNG_URI = `data:image/png;base64,${PNG}`
const PICTURE = 'https://files.example/a.png'
const FILM = 'https://files.example/a.mp4'

type Sent = { method?: string; path: string; body?: unknown; headers?: Record<string, string> }
type Refusal = { says: string; answer: Answer; code: ErrorCode; taken: 'no' | undefined; retry_after?: number }
type Media = { says: string; order: Partial<VideoOrder>; model?: string; body: Record<string, unknown> }

type Case = {
  kind: ProviderKind
  /** The path of the base URL. */
  version: string
  config?: Partial<ProviderConfig>
  model: string
  order?: Partial<VideoOrder>
  sent: Sent
  operation: Json
  asked: Sent
  /** The status with which fixtures come, where it is not 200. */
  statuses?: Record<string, number>
  /** Fixture -> what it says of the task. */
  states: Record<string, TaskProgress>
  /** A word for the state that nobody knows yet. */
  strange: Answer
  refusals: Refusal[]
  media: Media[]
  /** Orders that are refused before anything is sent, by field. */
  unable: { order: Partial<VideoOrder>; model?: string; param: string }[]
  cancels?: Sent
}

const fixture = (kind: string, name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dir, 'fixtures', kind, `${name}.json`), 'utf8'))

const refusal = (status: number, body: unknown, code: ErrorCode, taken: 'no' | 'open' = 'no'): Refusal => ({
  says: `${status} ${JSON.stringify(body)}`,
  answer: whole(body, { status }),
  code,
  taken: taken === 'no' ? 'no' : undefined,
})
const limited = (body: unknown): Refusal => ({
  says: '429 with retry-after',
  answer: whole(body, { status: 429, headers: { 'retry-after': '17' } }),
  code: 'rate_limit_exceeded',
  taken: 'no',
  retry_after: 17,
})
const failure = (fail_code: FailCode, fail_reason: unknown): TaskProgress => ({
  status: 'FAILURE',
  fail_code,
  fail_reason: fail_reason as string,
})
const success = (...outputs: RemoteOutput[]): TaskProgress => ({ status: 'SUCCESS', outputs })
const NOTHING_MADE = success()
const ANY = expect.any(String)
const CANCELED = failure('canceled', ANY)

const FAL_REQUEST = '/fal-ai/veo3.1/requests/764cabcf-b745-4b3e-ae38-1200304cf45b'
const FAL: Case = {
  kind: 'fal',
  version: '',
  model: 'fal-ai/veo3.1',
  order: {
    seed: 7,
    negative_prompt: 'rain',
    metadata: { fal: { auto_fix: true, duration: '60s', webhookUrl: 'https://evil.example', model: 'x' } },
  },
  sent: {
    path: '/fal-ai/veo3.1',
    headers: { authorization: `Key ${KEY}`, 'user-agent': 'gatehouse' },
    body: {
      prompt: 'A red kite',
      aspect_ratio: '16:9',
      duration: '4s',
      resolution: '720p',
      seed: 7,
      generate_audio: false,
      negative_prompt: 'rain',
      auto_fix: true,
    },
  },
  operation: {
    model: 'fal-ai/veo3.1',
    operation: {
      responseUrl: `https://queue.fal.run${FAL_REQUEST}`,
      submitUrl: 'https://queue.fal.run/fal-ai/veo3.1',
    },
  },
  asked: { path: FAL_REQUEST, headers: { authorization: `Key ${KEY}` } },
  statuses: { pending: 400, 'failed-policy': 422, 'failed-input': 422, 'failed-media': 422, 'failed-internal': 500 },
  states: {
    pending: {},
    done: success({
      url: 'https://v3b.fal.media/files/b/kangaroo/oUCiZjQwEy6bIQdPUSLDF_output.mp4',
      content_type: 'video/mp4',
    }),
    'done-several': success(
      { url: 'https://v3b.fal.media/files/b/a.mp4' },
      { url: 'https://v3b.fal.media/files/b/b.mp4', content_type: 'video/webm' },
    ),
    'done-without': NOTHING_MADE,
    'done-filtered': failure('content_policy_violation', ANY),
    'failed-policy': failure('content_policy_violation', expect.stringContaining('content checker')),
    'failed-input': failure('invalid_input', expect.stringContaining('permitted')),
    'failed-media': failure('input_media_invalid', expect.stringContaining('download')),
    'failed-internal': failure('upstream_error', ANY),
  },
  strange: whole({ detail: 'Request is still in progress' }, { status: 400 }),
  refusals: [
    refusal(401, { detail: 'Cannot access application. Authentication is required.' }, 'upstream_auth'),
    refusal(403, { detail: 'User is locked. Reason: Exhausted balance.' }, 'insufficient_quota'),
    refusal(422, fixture('fal', 'failed-input'), 'upstream_invalid_request'),
    refusal(422, fixture('fal', 'failed-policy'), 'content_policy_violation'),
    refusal(404, { detail: 'Application not found' }, 'model_not_found'),
    limited({ detail: 'Too many requests' }),
  ],
  media: [
    { says: 'the first frame is image_url', order: { image: PNG }, body: { image_url: PNG_URI } },
    { says: 'an address goes on as it is', order: { image: PICTURE }, body: { image_url: PICTURE } },
    { says: 'the video is video_url', order: { video: FILM }, body: { video_url: FILM } },
    {
      says: 'other models are told of seconds in other ways',
      order: {},
      model: 'fal-ai/kling-video/v2.6/pro/text-to-video',
      body: { duration: '4' },
    },
    {
      says: 'and others in numbers',
      order: { seed: 0 },
      model: 'fal-ai/sora-2/text-to-video',
      body: { duration: 4, seed: 0 },
    },
  ],
  unable: [
    { order: { last_image: PNG }, param: 'last_image' },
    { order: { images: [PNG] }, param: 'images' },
    { order: { n: 2 }, param: 'n' },
  ],
  cancels: { method: 'PUT', path: `${FAL_REQUEST}/cancel`, headers: { authorization: `Key ${KEY}` } },
}

const PREDICTION = '/v1/predictions/gm3qorzdhgbfurvjtvhg6dckhu'
const DELIVERED = 'https://replicate.delivery/xezq/9Ew9vWcVf/tmp.mp4'
const REPLICATE: Case = {
  kind: 'replicate',
  version: '/v1',
  model: 'wan-video/wan-2.5-t2v',
  order: {
    seed: 7,
    negative_prompt: 'rain',
    metadata: { replicate: { enable_prompt_expansion: false, resolution: '4k' } },
  },
  sent: {
    path: '/v1/models/wan-video/wan-2.5-t2v/predictions',
    headers: { authorization: `Bearer ${KEY}` },
    body: {
      input: {
        prompt: 'A red kite',
        aspect_ratio: '16:9',
        duration: 4,
        resolution: '720p',
        seed: 7,
        generate_audio: false,
        negative_prompt: 'rain',
        enable_prompt_expansion: false,
      },
    },
  },
  operation: { model: 'wan-video/wan-2.5-t2v', operation: { getUrl: `https://api.replicate.com${PREDICTION}` } },
  asked: { path: PREDICTION, headers: { authorization: `Bearer ${KEY}` } },
  states: {
    starting: { status: 'QUEUED' },
    processing: { status: 'IN_PROGRESS', progress: 43 },
    done: success({ url: DELIVERED }),
    'done-several': success({ url: DELIVERED }, { url: DELIVERED.replace('tmp', 'two') }),
    'done-without': NOTHING_MADE,
    failed: failure('generation_failed', 'CUDA out of memory'),
    'failed-policy': failure('content_policy_violation', ANY),
    canceled: CANCELED,
    aborted: CANCELED,
  },
  strange: whole({ ...(fixture('replicate', 'starting') as object), status: 'thinking' }),
  refusals: [
    refusal(
      401,
      { title: 'Unauthenticated', detail: 'You did not pass a valid authentication token', status: 401 },
      'upstream_auth',
    ),
    refusal(
      402,
      { title: 'Insufficient credit', detail: 'You have insufficient credit to run this model.', status: 402 },
      'insufficient_quota',
    ),
    refusal(
      422,
      { title: 'Input validation failed', detail: '- input.duration: must be one of 5, 10', status: 422 },
      'upstream_invalid_request',
    ),
    refusal(
      404,
      { title: 'Not found', detail: 'The requested resource could not be found.', status: 404 },
      'model_not_found',
    ),
    limited({ detail: 'Request was throttled. Your rate limit resets in ~17s.', status: 429 }),
  ],
  media: [
    { says: 'the first frame is image', order: { image: PNG }, body: { image: PNG_URI } },
    { says: 'pixels are size', order: { size: '1280x720' }, body: { size: '1280x720' } },
    { says: 'the video is video', order: { video: FILM }, body: { video: FILM } },
  ],
  unable: [
    { order: { last_image: PNG }, param: 'last_image' },
    { order: { images: [PNG] }, param: 'images' },
    { order: { n: 2 }, param: 'n' },
  ],
  cancels: { method: 'POST', path: `${PREDICTION}/cancel`, headers: { authorization: `Bearer ${KEY}` } },
}

const veoRefusals = [
  refusal(
    401,
    { error: { code: 401, message: 'Request had invalid authentication credentials.', status: 'UNAUTHENTICATED' } },
    'upstream_auth',
  ),
  refusal(403, { error: { code: 403, message: 'Permission denied.', status: 'PERMISSION_DENIED' } }, 'upstream_auth'),
  refusal(
    402,
    { error: { code: 402, message: 'Your prepayment credits are depleted.', status: 'RESOURCE_EXHAUSTED' } },
    'insufficient_quota',
  ),
  refusal(
    400,
    { error: { code: 400, message: 'durationSeconds must be 4, 6 or 8.', status: 'INVALID_ARGUMENT' } },
    'upstream_invalid_request',
  ),
  refusal(
    400,
    {
      error: {
        code: 400,
        message: "The prompt violates Google's Responsible AI practices.",
        status: 'INVALID_ARGUMENT',
      },
    },
    'content_policy_violation',
  ),
  refusal(404, { error: { code: 404, message: 'models/x is not found', status: 'NOT_FOUND' } }, 'model_not_found'),
  limited({
    error: { code: 429, message: 'Resource has been exhausted (e.g. check quota).', status: 'RESOURCE_EXHAUSTED' },
  }),
]
const veoImage = { bytesBase64Encoded: PNG, mimeType: 'image/png' }

const GOOGLE_OPERATION = 'models/veo-3.1-generate-preview/operations/bw3xq9f4r2ts'
const GOOGLE: Case = {
  kind: 'google',
  version: '/v1beta',
  model: 'veo-3.1-generate-preview',
  order: {
    seed: 7,
    negative_prompt: 'rain',
    n: 2,
    metadata: { google: { personGeneration: 'allow_adult', durationSeconds: 60 } },
  },
  sent: {
    path: '/v1beta/models/veo-3.1-generate-preview:predictLongRunning',
    headers: { 'x-goog-api-key': KEY },
    body: {
      instances: [{ prompt: 'A red kite' }],
      parameters: {
        sampleCount: 2,
        aspectRatio: '16:9',
        resolution: '720p',
        durationSeconds: 4,
        seed: 7,
        personGeneration: 'allow_adult',
        negativePrompt: 'rain',
      },
    },
  },
  operation: { model: 'veo-3.1-generate-preview', operation: { operationName: GOOGLE_OPERATION } },
  asked: { path: `/v1beta/${GOOGLE_OPERATION}`, headers: { 'x-goog-api-key': KEY } },
  states: {
    pending: {},
    done: success(
      { url: '{origin}/v1beta/files/abc123:download?alt=media', content_type: 'video/mp4' },
      { url: '{origin}/v1beta/files/def456:download?alt=media', content_type: 'video/mp4' },
    ),
    'done-without': NOTHING_MADE,
    'done-filtered': failure('content_policy_violation', expect.stringContaining('blocked')),
    failed: failure('upstream_error', ANY),
    'failed-policy': failure('content_policy_violation', ANY),
    'failed-input': failure('invalid_input', 'Image resolution is too small.'),
  },
  strange: whole({ name: GOOGLE_OPERATION, metadata: { state: 'DREAMING' } }),
  refusals: [
    ...veoRefusals,
    refusal(
      400,
      { error: { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' } },
      'upstream_auth',
    ),
  ],
  media: [
    {
      says: 'frames and references are bytes',
      order: { image: PNG, last_image: PNG },
      body: { instances: [{ prompt: 'A red kite', image: veoImage, lastFrame: veoImage }] },
    },
    {
      says: 'references are assets',
      order: { images: [PNG] },
      body: { instances: [{ prompt: 'A red kite', referenceImages: [{ image: veoImage, referenceType: 'asset' }] }] },
    },
  ],
  unable: [
    { order: { video: FILM }, param: 'video' },
    { order: { last_image: PNG, images: [PNG] }, param: 'images' },
    { order: { audio_enable: true }, model: 'veo-2.0-generate-001', param: 'audio_enable' },
  ],
}

const VERTEX_HOME = '/v1/projects/p1/locations/us-central1/publishers/google'
const VERTEX_MODEL = 'veo-3.1-generate-001'
const VERTEX_OPERATION = `${VERTEX_HOME.slice('/v1/'.length)}/models/${VERTEX_MODEL}/operations/a1b07c8e-7b5a-4aba-bb34-3e1ccb8afcc8`
const VERTEX: Case = {
  kind: 'google-vertex',
  version: VERTEX_HOME,
  config: { options: { project: 'p1' } },
  model: VERTEX_MODEL,
  order: {
    seed: 7,
    audio_enable: true,
    metadata: { 'google-vertex': { storageUri: 'gs://bucket-1/out', generateAudio: false } },
  },
  sent: {
    path: `${VERTEX_HOME}/models/${VERTEX_MODEL}:predictLongRunning`,
    headers: { authorization: `Bearer ${KEY}` },
    body: {
      instances: [{ prompt: 'A red kite' }],
      parameters: {
        sampleCount: 1,
        aspectRatio: '16:9',
        resolution: '720p',
        durationSeconds: 4,
        seed: 7,
        generateAudio: true,
        storageUri: 'gs://bucket-1/out',
      },
    },
  },
  operation: { model: VERTEX_MODEL, operation: { operationName: VERTEX_OPERATION } },
  asked: {
    method: 'POST',
    path: `${VERTEX_HOME}/models/${VERTEX_MODEL}:fetchPredictOperation`,
    headers: { authorization: `Bearer ${KEY}` },
    body: { operationName: VERTEX_OPERATION },
  },
  states: {
    pending: {},
    done: success({ content_type: 'video/mp4', open: expect.any(Function) }),
    'done-in-bucket': success({ content_type: 'video/mp4', open: expect.any(Function) }),
    'done-without': NOTHING_MADE,
    'done-filtered': failure('content_policy_violation', '58061214'),
    failed: failure('upstream_error', 'Internal error.'),
    'failed-quota': failure('upstream_rate_limited', ANY),
    'failed-policy': failure('content_policy_violation', ANY),
  },
  strange: whole({ name: VERTEX_OPERATION, done: false }),
  refusals: veoRefusals,
  media: [
    {
      says: 'frames are bytes',
      order: { image: PNG_URI, last_image: PNG },
      body: { instances: [{ prompt: 'A red kite', image: veoImage, lastFrame: veoImage }] },
    },
  ],
  unable: [
    { order: { video: FILM }, param: 'video' },
    { order: { last_image: PNG, images: [PNG] }, param: 'images' },
    { order: { audio_enable: true }, model: 'veo-2.0-generate-001', param: 'audio_enable' },
  ],
}

const WAN_TASK = '0385dc79-5ff8-4d82-bcb6-123456789012'
const ALIBABA: Case = {
  kind: 'alibaba',
  version: '/api/v1',
  model: 'wan2.5-t2v-preview',
  order: { seed: 7, negative_prompt: 'rain', metadata: { alibaba: { promptExtend: false, audio: true } } },
  sent: {
    path: '/api/v1/services/aigc/video-generation/video-synthesis',
    headers: { authorization: `Bearer ${KEY}`, 'x-dashscope-async': 'enable' },
    body: {
      model: 'wan2.5-t2v-preview',
      input: { prompt: 'A red kite', negative_prompt: 'rain' },
      parameters: { duration: 4, seed: 7, size: '1280*720', prompt_extend: false, audio: false },
    },
  },
  operation: { model: 'wan2.5-t2v-preview', operation: { taskId: WAN_TASK } },
  asked: { path: `/api/v1/tasks/${WAN_TASK}`, headers: { authorization: `Bearer ${KEY}` } },
  states: {
    pending: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS' },
    unknown: {},
    done: success({
      url: 'https://dashscope-result-sh.oss-accelerate.aliyuncs.com/1d/xxx.mp4?Expires=1780000000',
      content_type: 'video/mp4',
    }),
    'done-without': NOTHING_MADE,
    failed: failure('upstream_error', 'Generation failed.'),
    'failed-policy': failure('content_policy_violation', 'Output data may contain inappropriate content.'),
    'failed-media': failure('input_media_invalid', ANY),
    'failed-input': failure('invalid_input', ANY),
    canceled: CANCELED,
  },
  strange: whole({ output: { task_id: WAN_TASK, task_status: 'SUSPENDED' }, request_id: 'r' }),
  refusals: [
    refusal(401, { code: 'InvalidApiKey', message: 'Invalid API-key provided.', request_id: 'r' }, 'upstream_auth'),
    refusal(
      400,
      { code: 'Arrearage', message: 'Access denied, please make sure your account is in good standing.' },
      'insufficient_quota',
    ),
    refusal(400, { code: 'InvalidParameter', message: 'duration must be in [5, 10]' }, 'upstream_invalid_request'),
    refusal(
      400,
      { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' },
      'content_policy_violation',
    ),
    limited({ code: 'Throttling.RateQuota', message: 'Requests rate limit exceeded, please try again later.' }),
  ],
  media: [
    {
      says: 'the first frame is img_url, and the size a tier',
      order: { image: PNG },
      model: 'wan2.5-i2v-preview',
      body: {
        input: { prompt: 'A red kite', img_url: PNG_URI },
        parameters: { duration: 4, resolution: '720P', audio: false },
      },
    },
    {
      says: 'wan2.7 has a tier and a ratio',
      order: { aspect_ratio: '9:16', audio_enable: true, size: '1080p' },
      model: 'wan2.7-t2v',
      body: { parameters: { duration: 4, resolution: '1080P', ratio: '9:16' } },
    },
    {
      says: 'wan3 takes frames and references together',
      order: { image: PNG, last_image: PICTURE, video: FILM },
      model: 'wan3-t2v',
      body: {
        input: {
          prompt: 'A red kite',
          media: [
            { type: 'reference_video', url: FILM },
            { type: 'first_frame', url: PNG_URI },
            { type: 'last_frame', url: PICTURE },
          ],
        },
      },
    },
    {
      says: 'a ratio of older models is one of pixels',
      order: { aspect_ratio: '3:4', size: '1080p' },
      body: { parameters: { duration: 4, size: '1248*1632', audio: false } },
    },
  ],
  unable: [
    { order: { last_image: PNG }, param: 'last_image' },
    { order: { images: [PICTURE] }, param: 'images' },
    { order: { n: 2 }, param: 'n' },
    { order: { size: '720p', aspect_ratio: '21:9' }, param: 'size' },
    { order: { size: '480p' }, model: 'wan2.7-t2v', param: 'size' },
    { order: { video: 'https://files.example/film' }, model: 'wan3-t2v', param: 'video' },
  ],
  cancels: { method: 'POST', path: `/api/v1/tasks/${WAN_TASK}/cancel`, headers: { authorization: `Bearer ${KEY}` } },
}

const minimaxError = (http_code: number, type: string, message: string) => ({
  type: 'error',
  error: { type, message, http_code: String(http_code) },
  request_id: '021785229015510a2c883cf675b9804d',
})
const MINIMAX: Case = {
  kind: 'minimax',
  version: '/v2',
  model: 'MiniMax-H3',
  order: { size: '768p', seed: 7, metadata: { minimax: { aigcWatermark: true, resolution: '2K' } } },
  sent: {
    path: '/v2/video_generation',
    headers: { authorization: `Bearer ${KEY}` },
    body: {
      model: 'MiniMax-H3',
      content: [{ type: 'text', text: 'A red kite' }],
      resolution: '768P',
      duration: 4,
      ratio: '16:9',
      aigc_watermark: true,
    },
  },
  operation: {
    model: 'MiniMax-H3',
    operation: { taskId: '424010985738629', resolvedInputs: { imageCount: 0, referenceVideoIndices: [] } },
  },
  asked: { path: '/v2/query/video_generation/424010985738629', headers: { authorization: `Bearer ${KEY}` } },
  states: {
    queued: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS' },
    done: success({ url: 'https://cdn.hailuoai.video/output.mp4?x=1', content_type: 'video/mp4' }),
    'done-without': NOTHING_MADE,
    failed: failure('generation_failed', 'internal error'),
    'failed-policy': failure('content_policy_violation', ANY),
    'failed-input': failure('invalid_input', 'invalid params'),
    cancelled: CANCELED,
    expired: failure('generation_failed', ANY),
  },
  strange: whole({ task: { id: '424010985738629', status: 'reviewing' } }),
  refusals: [
    refusal(401, minimaxError(401, 'authorized_error', 'login fail (1004)'), 'upstream_auth'),
    refusal(402, minimaxError(402, 'insufficient_balance_error', 'insufficient balance (1008)'), 'insufficient_quota'),
    refusal(400, minimaxError(400, 'bad_request_error', 'invalid params (2013)'), 'upstream_invalid_request'),
    refusal(
      422,
      minimaxError(422, 'unprocessable_entity_error', 'video description contains sensitive content (1026)'),
      'content_policy_violation',
    ),
    refusal(200, { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }, 'insufficient_quota'),
    refusal(200, { base_resp: { status_code: 1026, status_msg: 'sensitive' } }, 'content_policy_violation'),
    refusal(200, { base_resp: { status_code: 1002, status_msg: 'rate limit' } }, 'rate_limit_exceeded'),
    limited(minimaxError(429, 'rate_limit_error', 'rate limit, please retry later (1002)')),
  ],
  media: [
    {
      says: 'frames have their roles, and decide the ratio',
      order: { size: '768p', image: PNG, last_image: PICTURE },
      body: {
        model: 'MiniMax-H3',
        content: [
          { type: 'text', text: 'A red kite' },
          { type: 'image_url', image_url: { url: PNG_URI }, role: 'first_frame' },
          { type: 'image_url', image_url: { url: PICTURE }, role: 'last_frame' },
        ],
        resolution: '768P',
        duration: 4,
      },
    },
    {
      says: 'references have theirs',
      order: { size: '768p', images: [PNG], video: FILM },
      body: {
        content: [
          { type: 'text', text: 'A red kite' },
          { type: 'image_url', image_url: { url: PNG_URI }, role: 'reference_image' },
          { type: 'video_url', video_url: { url: FILM }, role: 'reference_video' },
        ],
      },
    },
  ],
  unable: [
    { order: { size: '720p' }, param: 'size' },
    { order: { size: '768p', duration: 3 }, param: 'duration' },
    { order: { size: '768p', duration: 16 }, param: 'duration' },
    { order: { size: '768p', aspect_ratio: '5:4' }, param: 'aspect_ratio' },
    { order: { size: '768p', negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { size: '768p', n: 2 }, param: 'n' },
    { order: { size: '768p', last_image: PNG }, param: 'last_image' },
    { order: { size: '768p', image: PNG, images: [PNG] }, param: 'images' },
    { order: { size: '768p', metadata: { minimax: { aigcWatermark: 'yes' } } }, param: 'metadata' },
  ],
}

const XAI_REQUEST = 'aa87081b-1a29-d8a6-e5bf-5807e3a7a561'
const XAI: Case = {
  kind: 'xai',
  version: '/v1',
  model: 'grok-imagine-video-1.5',
  order: { seed: 7, audio_enable: true, metadata: { xai: { user: 'u1' } } },
  sent: {
    path: '/v1/videos/generations',
    headers: { authorization: `Bearer ${KEY}` },
    body: {
      model: 'grok-imagine-video-1.5',
      prompt: 'A red kite',
      duration: 4,
      aspect_ratio: '16:9',
      resolution: '720p',
      generate_audio: true,
      user: 'u1',
    },
  },
  operation: { model: 'grok-imagine-video-1.5', operation: { requestId: XAI_REQUEST } },
  asked: { path: `/v1/videos/${XAI_REQUEST}`, headers: { authorization: `Bearer ${KEY}` } },
  statuses: { pending: 202, running: 202 },
  states: {
    pending: { progress: 0 },
    running: { status: 'IN_PROGRESS', progress: 42 },
    done: success({ url: 'https://vidgen.x.ai/xai-vidgen-bucket/xai-video-aa87081b.mp4', content_type: 'video/mp4' }),
    'done-without': NOTHING_MADE,
    'done-filtered': failure('content_policy_violation', ANY),
    failed: failure('generation_failed', 'The video could not be generated.'),
    'failed-policy': failure('content_policy_violation', ANY),
    'failed-text': failure('content_policy_violation', ANY),
    expired: failure('generation_failed', ANY),
  },
  strange: whole({ status: 'reviewing', model: 'grok-imagine-video' }),
  refusals: [
    refusal(401, { code: 'unauthenticated:bad-credentials', error: 'Invalid API key' }, 'upstream_auth'),
    refusal(
      400,
      { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: ke***or.' },
      'upstream_auth',
    ),
    refusal(
      403,
      {
        code: 'The caller does not have permission',
        error: 'Your team has either used all available credits or reached its monthly spending limit.',
      },
      'insufficient_quota',
    ),
    refusal(
      400,
      { code: 'Client specified an invalid argument', error: 'Invalid duration.' },
      'upstream_invalid_request',
    ),
    refusal(
      400,
      { error: { message: 'Rejected by content moderation.', type: 'x', code: 'y' } },
      'content_policy_violation',
    ),
    refusal(404, { code: 'not-found', error: 'The model x does not exist' }, 'model_not_found'),
    limited({ code: 'resource-exhausted', error: 'Too many requests' }),
  ],
  media: [
    {
      says: 'portrait is a ratio and a tier',
      order: { aspect_ratio: '9:16', size: '1080x1920' },
      body: { aspect_ratio: '9:16', resolution: '1080p' },
    },
    {
      says: 'frames are image and last_frame',
      order: { image: PNG, last_image: PICTURE },
      body: { image: { url: PNG_URI }, last_frame: { url: PICTURE } },
    },
    {
      says: 'references are reference_images',
      order: { images: [PNG, PICTURE] },
      body: { reference_images: [{ url: PNG_URI }, { url: PICTURE }] },
    },
  ],
  unable: [
    { order: { negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { n: 2 }, param: 'n' },
    { order: { size: '1440x1440' }, param: 'size' },
    { order: { image: PNG, last_image: PNG }, model: 'grok-imagine-video', param: 'last_image' },
  ],
}

const FLUX_ID = '5c9e7f0a-0c0b-4f0e-9a0a-3b6f6a1f2f11'
const BLACK_FOREST_LABS: Case = {
  kind: 'black-forest-labs',
  version: '/v1',
  model: 'flux-3-video',
  order: { duration: 5, seed: 7, metadata: { 'black-forest-labs': { safetyTolerance: 1, resolution: 'fhd' } } },
  sent: {
    path: '/v1/flux-3-video',
    headers: { 'x-key': KEY },
    body: {
      mode: 't2v',
      prompt: 'A red kite',
      aspect_ratio: '16:9',
      duration: 5,
      resolution: 'hd',
      generate_audio: false,
      safety_tolerance: 1,
    },
  },
  operation: {
    model: 'flux-3-video',
    operation: {
      requestId: FLUX_ID,
      pollingUrl: `https://api.bfl.ai/v1/get_result?id=${FLUX_ID}`,
      cost: 40,
      inputMegapixels: 0,
      outputMegapixels: 3.7,
    },
  },
  asked: { path: `/v1/get_result?id=${FLUX_ID}`, headers: { 'x-key': KEY } },
  states: {
    pending: {},
    running: { status: 'IN_PROGRESS', progress: 37 },
    done: success({ url: 'https://delivery-eu1.bfl.ai/results/5c/9e/sample.mp4?se=2026', content_type: 'video/mp4' }),
    'done-without': NOTHING_MADE,
    failed: failure('generation_failed', 'Error: worker lost'),
    'failed-policy': failure('content_policy_violation', 'Request Moderated: Safety Filter'),
    'failed-output': failure('content_policy_violation', 'Content Moderated.'),
  },
  strange: whole({ id: FLUX_ID, status: 'Dreaming', result: null }),
  refusals: [
    refusal(401, { detail: 'Not authenticated - Invalid Authentication' }, 'upstream_auth'),
    refusal(403, { detail: 'Not authenticated' }, 'upstream_auth'),
    refusal(402, { detail: 'Insufficient credits.' }, 'insufficient_quota'),
    refusal(
      422,
      { detail: [{ loc: ['body', 'duration'], msg: 'Input should be less than 21', type: 'x' }] },
      'upstream_invalid_request',
    ),
    refusal(422, { detail: 'Request Moderated' }, 'content_policy_violation'),
    refusal(404, { detail: 'Not Found' }, 'model_not_found'),
    limited({ detail: 'Too many active tasks.' }),
  ],
  media: [
    {
      says: 'frames are keyframes: an address, or bytes',
      order: { duration: 5, image: PNG_URI, last_image: PICTURE },
      body: { mode: 'i2v', keyframes: [PNG, PICTURE] },
    },
    { says: 'a video is gone on from', order: { duration: 5, video: FILM }, body: { mode: 'v2v', start_video: FILM } },
  ],
  unable: [
    { order: {}, param: 'duration' },
    { order: { duration: 21 }, param: 'duration' },
    { order: { duration: 5, aspect_ratio: '5:4' }, param: 'aspect_ratio' },
    { order: { duration: 5, images: [PNG] }, param: 'images' },
    { order: { duration: 5, negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { duration: 5, n: 2 }, param: 'n' },
  ],
}

const CASES = [FAL, REPLICATE, GOOGLE, VERTEX, ALIBABA, MINIMAX, XAI, BLACK_FOREST_LABS]

const started: Vendor[] = []
afterEach(async () => {
  for (const vendor of started.splice(0)) await vendor.stop()
})

const partsOf = (config: ProviderConfig, environment: Record<string, string> = {}) => {
  const clock = manualClock()
  const lines: string[] = []
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => lines.push(text) })
  const transport = createTransport({ clock, log })
  const logged = () => {
    log.flush()
    return lines.join('')
  }
  return {
    id: 'acme',
    config,
    timeouts: DEFAULT_TIMEOUTS,
    transport,
    clock,
    log,
    environment,
    manual: async () => [],
    logged,
  }
}

type Opened = { vendor: Vendor; video: VideoProvider; logged: () => string; clock: ReturnType<typeof manualClock> }

function open(given: Case, ...answers: Answer[]): Opened {
  const vendor = startVendor(...answers)
  started.push(vendor)
  const parts = partsOf({ kind: given.kind, base_url: vendor.origin + given.version, key: KEY, ...given.config })
  const { video } = createProvider(parts)
  if (!video) throw new Error('no videos here')
  return { vendor, video, logged: parts.logged, clock: parts.clock }
}

/** Orders of a vendor whose smallest order is not that of the others say the difference themselves. */
const callOf = (given: Case, order: Partial<VideoOrder> = given.order ?? {}, model = given.model): VideoCall => ({
  model,
  request: {
    model: `acme/${model}`,
    prompt: 'A red kite',
    n: 1,
    aspect_ratio: '16:9',
    duration: 4,
    size: '720p',
    audio_enable: false,
    ...order,
  },
  task_id: 'task_0123456789abcdefghijABCDEFGHIJ45',
  idempotency_key: 'the-key',
})

async function errorOf(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.then(
    (value) => value,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return thrown
  throw new Error(`expected a GatewayError, found ${JSON.stringify(thrown)} ${thrown}`)
}

function expectSent(request: Vendor['requests'][number] | undefined, sent: Sent): void {
  expect(request?.method).toBe(sent.method ?? 'POST')
  expect(request?.path).toBe(sent.path)
  if (sent.body !== undefined) expect(request?.json()).toEqual(sent.body as Record<string, unknown>)
  for (const [name, value] of Object.entries(sent.headers ?? {})) expect(request?.headers[name]).toBe(value)
}

const named = (given: Case) => [given.kind, given] as const

describe.each(CASES.map(named))('%s', (kind, given) => {
  const accepted = () => whole(fixture(kind, 'accepted'))

  test('an order is sent once, in the words of the vendor, and what it answers is all that is kept', async () => {
    const { vendor, video } = open(given, accepted())
    expect(await video.start(callOf(given), SIGNAL)).toEqual({ operation: given.operation })
    expectSent(vendor.requests[0], given.sent)
    expect(vendor.requests).toHaveLength(1)
  })

  test.each(Object.entries(given.states))('asked for the task, %s means what it means', async (name, progress) => {
    const { vendor, video } = open(given, whole(fixture(kind, name), { status: given.statuses?.[name] ?? 200 }))
    const said = await video.status(given.operation, SIGNAL)
    const here = JSON.parse(JSON.stringify(said).replaceAll(vendor.origin, '{origin}'))
    const outputs =
      'outputs' in said ? said.outputs.map((output, at) => ('open' in output ? output : here.outputs[at])) : undefined
    expect({ ...here, ...(outputs ? { outputs } : {}) }).toEqual(progress)
    expectSent(vendor.requests[0], { method: 'GET', ...given.asked })
    expect(vendor.requests).toHaveLength(1)
  })

  test('a state that is not known yet keeps the one that was', async () => {
    const { video } = open(given, given.strange)
    expect(await video.status(given.operation, SIGNAL)).toEqual({})
  })

  test('an object without a state ends nothing', async () => {
    const { video } = open(given, whole({}), whole({ status: 7, output: [], task: null }))
    for (let round = 0; round < 2; round++) {
      const said = await video.status(given.operation, SIGNAL).catch((error: unknown) => error)
      if (!(said instanceof GatewayError)) expect(said).toEqual({})
    }
  })

  test('when the vendor says when to ask again, that is handed on', async () => {
    const [name = ''] = Object.keys(given.states)
    const status = given.statuses?.[name] ?? 200
    const { video } = open(given, whole(fixture(kind, name), { status, headers: { 'retry-after': '9' } }))
    expect(await video.status(given.operation, SIGNAL)).toMatchObject({ retry_after_seconds: 9 })
  })

  test.each<[string, Answer]>([
    ['no JSON', whole('<html>', { headers: { 'content-type': 'text/html' } })],
    ['401', whole({ detail: 'who are you?' }, { status: 401 })],
    ['404', whole({ detail: 'not found' }, { status: 404 })],
    ['429', whole({ detail: 'slow down' }, { status: 429 })],
    ['500', whole({ detail: 'oops' }, { status: 500 })],
    ['503 that is no JSON', whole('busy', { status: 503 })],
    ['a redirect elsewhere', whole('', { status: 302, headers: { location: 'https://elsewhere.example/x' } })],
    ['a broken connection', reset()],
  ])('%s in place of a state says nothing of the task: an error', async (_, answer) => {
    const { vendor, video } = open(given, answer)
    const error = await errorOf(video.status(given.operation, SIGNAL))
    expect(error.detail.taken).toBeUndefined()
    // A GET on a kept connection may be repeated by the runtime; these are on a new one.
    expect(vendor.requests).toHaveLength(1)
  })

  test.each([
    ...given.refusals,
    refusal(500, { message: 'oops' }, 'bad_upstream_response'),
    refusal(503, { message: 'later' }, 'server_is_overloaded'),
    refusal(502, { message: 'bad gateway' }, 'bad_upstream_response', 'open'),
    refusal(504, { message: 'gateway timeout' }, 'upstream_timeout', 'open'),
    {
      says: '502 that is no JSON',
      answer: whole('<html>', { status: 502 }),
      code: 'bad_upstream_response',
      taken: undefined,
    },
    {
      says: 'a redirect',
      answer: whole('', { status: 307, headers: { location: 'https://elsewhere.example/x' } }),
      code: 'bad_upstream_response',
      taken: 'no',
    },
    { says: 'an answer that is not JSON', answer: whole('ok'), code: 'bad_upstream_response', taken: undefined },
    { says: 'an answer without an id', answer: whole({}), code: 'bad_upstream_response', taken: undefined },
  ] as Refusal[])(
    'an order answered with $says is $code, taken: $taken',
    async ({ answer, code, taken, retry_after }) => {
      const { vendor, video, logged } = open(given, answer)
      const error = await errorOf(video.start(callOf(given), SIGNAL))
      expect([error.code, error.detail.taken, error.detail.retry_after]).toEqual([code, taken, retry_after])
      for (const text of [error.message, String(error.cause ?? ''), logged()]) {
        expect(text).not.toContain(KEY)
        expect(text).not.toContain(String(vendor.port))
        expect(text).not.toContain('kite')
      }
      expect(vendor.requests).toHaveLength(1)
    },
  )

  test('a connection that breaks after the order was read leaves open whether it was taken; it was sent once', async () => {
    const { vendor, video } = open(given, reset(), accepted())
    const error = await errorOf(video.start(callOf(given), SIGNAL))
    expect(error.code).toBe('bad_upstream_response')
    expect(error.detail.taken).toBeUndefined()
    expect(vendor.requests).toHaveLength(1)
  })

  test('an answer that breaks off leaves it open too', async () => {
    const { vendor, video } = open(given, async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"id')
      wire.close()
    })
    expect((await errorOf(video.start(callOf(given), SIGNAL))).detail.taken).toBeUndefined()
    expect(vendor.requests).toHaveLength(1)
  })

  test('an order that reached nobody was not taken', async () => {
    const { vendor, video } = open(given)
    await vendor.stop()
    expect(await errorOf(video.start(callOf(given), SIGNAL))).toMatchObject({
      code: 'upstream_unreachable',
      detail: { taken: 'no' },
    })
  })

  test('an order whose caller has left is not sent', async () => {
    const { vendor, video } = open(given)
    expect((await errorOf(video.start(callOf(given), AbortSignal.abort()))).detail.taken).toBe('no')
    expect(vendor.requests).toHaveLength(0)
  })

  test.each(given.media)('of what is shown and asked, $says', async ({ order, model, body }) => {
    const { vendor, video } = open(given, accepted())
    await video.start(callOf(given, order, model), SIGNAL)
    const sent = vendor.requests[0]?.json() ?? {}
    expect(kind === 'replicate' ? sent.input : sent).toMatchObject(body)
  })

  test.each(given.unable)(
    'what it cannot honour is refused before anything is sent: $param',
    async ({ order, model, param }) => {
      const { vendor, video } = open(given)
      const error = await errorOf(video.start(callOf(given, order, model), SIGNAL))
      expect([error.status, error.detail.param, error.detail.taken]).toEqual([400, param, 'no'])
      expect(vendor.requests).toHaveLength(0)
    },
  )

  test(given.cancels ? 'it can be told to stop, and may refuse' : 'it cannot be told to stop', async () => {
    const { vendor, video } = open(
      given,
      whole({ status: 'ok' }, { status: 202 }),
      whole({ detail: 'no' }, { status: 409 }),
    )
    if (!given.cancels) return void expect(video.cancel).toBeUndefined()
    await video.cancel?.(given.operation, SIGNAL)
    expectSent(vendor.requests[0], given.cancels)
    await errorOf(video.cancel?.(given.operation, SIGNAL) ?? Promise.resolve())
    expect(vendor.requests).toHaveLength(2)
  })

  test('what was stored of an order of another kind is an error, not a question to the vendor', async () => {
    const { vendor, video } = open(given)
    for (const stored of [{}, null, 'x', { id: '1' }, { model: given.model }]) {
      expect((await errorOf(video.status(stored, SIGNAL))).code).toBe('internal_error')
    }
    expect(vendor.requests).toHaveLength(0)
  })

  test('a second order is never safe', () => expect(open(given).video.resubmit).toBe('unsafe'))
})

const SHARED = {
  ...FAL,
  operation: {
    model: FAL.model,
    operation: { responseUrl: 'https://queue.fal.run/x/requests/1', submitUrl: 'https://queue.fal.run/x' },
  },
}

describe('what the vendors share', () => {
  test.each([
    ['fal', 'FAL_KEY'],
    ['replicate', 'REPLICATE_API_TOKEN'],
    ['google', 'GEMINI_API_KEY'],
    ['google-vertex', 'GOOGLE_VERTEX_API_KEY'],
    ['alibaba', 'DASHSCOPE_API_KEY'],
    ['minimax', 'MINIMAX_API_KEY'],
    ['xai', 'XAI_API_KEY'],
    ['black-forest-labs', 'BFL_API_KEY'],
  ] as const)('%s takes its key from %s, and without one is refused at once, by name', (kind, name) => {
    expect(() => createProvider(partsOf({ kind }))).toThrow(/^providers\.acme needs a key/)
    expect(() => createProvider(partsOf({ kind }, { [name]: KEY }))).not.toThrow()
    expect(() => createProvider(partsOf({ kind, key: 'a key' }))).toThrow('providers.acme.key')
  })

  test('no package is loaded before it is needed', () => {
    const files = readdirSync(join(import.meta.dir, '../src'), { recursive: true, encoding: 'utf8' })
    const early = files
      .filter((name) => name.endsWith('.ts'))
      .filter((name) => {
        const text = readFileSync(join(import.meta.dir, '../src', name), 'utf8')
        return [...text.matchAll(/^import (?!type )[^;]*?from '@ai-sdk\//gm)].length > 0
      })
    expect(early).toEqual([])
  })

  test('an address that the vendor names elsewhere is not asked: the key stays where it belongs', async () => {
    const other = startVendor()
    started.push(other)
    const elsewhere = [
      {
        ...FAL,
        operation: { model: 'm', operation: { responseUrl: `${other.origin}/r`, submitUrl: `${other.origin}/s` } },
      },
      { ...REPLICATE, operation: { model: 'm', operation: { getUrl: 'https://api.replicate.com.evil.example/v1/p' } } },
      {
        ...BLACK_FOREST_LABS,
        operation: { model: 'm', operation: { requestId: 'i', pollingUrl: 'https://evil.example/p?id=i' } },
      },
      {
        ...BLACK_FOREST_LABS,
        operation: { model: 'm', operation: { requestId: 'i', pollingUrl: 'http://api.eu1.bfl.ai/p?id=i' } },
      },
    ]
    for (const given of elsewhere) {
      const { vendor, video } = open(given)
      expect((await errorOf(video.status(given.operation, SIGNAL))).code).toBe('bad_upstream_response')
      expect(vendor.requests.length + other.requests.length).toBe(0)
    }
  })

  test('a redirect is followed where it stays with the vendor, and nowhere else', async () => {
    const { vendor, video } = open(
      SHARED,
      whole('', { status: 302, headers: { location: '/moved' } }),
      whole(fixture('fal', 'done')),
    )
    expect(await video.status(SHARED.operation, SIGNAL)).toMatchObject({ status: 'SUCCESS' })
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/x/requests/1', '/moved'])
  })

  test('what a proxy at base_url writes in its own name is kept in the vendor\u2019s, and asked there again', async () => {
    const vendor = startVendor()
    started.push(vendor)
    const base_url = `${vendor.origin}/to-fal`
    const { video } = createProvider(partsOf({ kind: 'fal', key: KEY, base_url }))
    vendor.answer(whole({ request_id: '1', response_url: `${base_url}/x/requests/1` }), whole(fixture('fal', 'done')))
    const taken = await video?.start(callOf(FAL), SIGNAL)
    expect(JSON.stringify(taken)).toContain('https://queue.fal.run/x/requests/1')
    await video?.status(taken?.operation ?? null, SIGNAL)
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/to-fal/fal-ai/veo3.1', '/to-fal/x/requests/1'])
    expect(vendor.requests[1]?.headers.authorization).toBe(`Key ${KEY}`)
  })

  test('models of fal that do not lie below fal-ai are asked for where they lie', async () => {
    const { vendor, video } = open(FAL, whole(fixture('fal', 'accepted')), whole(fixture('fal', 'accepted')))
    await video.start(callOf(FAL, {}, 'bytedance/seedance-2.0/text-to-video'), SIGNAL)
    await video.start(callOf(FAL, {}, 'veo3'), SIGNAL)
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/bytedance/seedance-2.0/text-to-video', '/fal-ai/veo3'])
  })

  test('a model of google without sound is not told of it', async () => {
    const { vendor, video } = open(VERTEX, whole(fixture('google-vertex', 'accepted')))
    await video.start(callOf(VERTEX, {}, 'veo-2.0-generate-001'), SIGNAL)
    expect(vendor.requests[0]?.json().parameters).toEqual({
      sampleCount: 1,
      aspectRatio: '16:9',
      resolution: '720p',
      durationSeconds: 4,
    })
  })

  test('a pinned version of replicate goes to its own path', async () => {
    const { vendor, video } = open(REPLICATE, whole(fixture('replicate', 'accepted')))
    await video.start(callOf(REPLICATE, {}, 'owner/name:5c7d5dc6'), SIGNAL)
    expectSent(vendor.requests[0], { path: '/v1/predictions' })
    expect(vendor.requests[0]?.json().version).toBe('5c7d5dc6')
  })

  test('the operator may leave fields out, call them otherwise, and set fields that the vendor alone has', async () => {
    const given: Case = {
      ...FAL,
      config: {
        headers: { 'X-Team': 'blue' },
        fields: { drop: ['audio_enable'], rename: { last_image: 'tail_image_url', images: 'image_urls' } },
        request_defaults: { auto_fix: true, loop: true },
      },
    }
    const { vendor, video } = open(given, whole(fixture('fal', 'accepted')))
    await video.start(
      callOf(given, { last_image: PNG, images: [PNG, PICTURE], metadata: { fal: { loop: false } } }),
      SIGNAL,
    )
    expect(vendor.requests[0]?.json()).toEqual({
      prompt: 'A red kite',
      aspect_ratio: '16:9',
      duration: '4s',
      resolution: '720p',
      auto_fix: true,
      loop: false,
      tail_image_url: PNG_URI,
      image_urls: [PNG_URI, PICTURE],
    })
    expect(vendor.requests[0]?.headers['x-team']).toBe('blue')
  })

  test('what only tunes and is not taken is logged, without the prompt', async () => {
    const { video, logged } = open(XAI, whole(fixture('xai', 'accepted')))
    await video.start(callOf(XAI, { seed: 7 }), SIGNAL)
    expect(logged()).toContain('"feature":"seed"')
    expect(logged()).not.toContain('kite')
  })

  test('neither the key nor an address with one stands in what a client sees of a failed task', async () => {
    const said = {
      ...(fixture('replicate', 'failed') as object),
      error: `bad ${KEY} at https://a.example/x?key=abc123 Bearer abcdefgh`,
    }
    const { video } = open(REPLICATE, whole(said))
    const text = JSON.stringify(await video.status(REPLICATE.operation, SIGNAL))
    for (const secret of [KEY, 'abc123', 'abcdefgh']) expect(text).not.toContain(secret)
  })

  test('a video that is edited keeps its frame and length at xai', async () => {
    const { vendor, video } = open(XAI, whole(fixture('xai', 'accepted')))
    await video.start(callOf(XAI, { video: FILM }), SIGNAL)
    expectSent(vendor.requests[0], {
      path: '/v1/videos/edits',
      body: { model: XAI.model, prompt: 'A red kite', video: { url: FILM } },
    })
  })

  test('a task that black-forest-labs does not know is an error, not a failure', async () => {
    const { video } = open(BLACK_FOREST_LABS, whole(fixture('black-forest-labs', 'lost')))
    expect((await errorOf(video.status(BLACK_FOREST_LABS.operation, SIGNAL))).code).toBe('bad_upstream_response')
  })
})

describe('files', () => {
  test('of google are fetched with the key in a header, and only there', async () => {
    const { vendor, video } = open(GOOGLE, whole(fixture('google', 'done')))
    const said = await video.status(GOOGLE.operation, SIGNAL)
    expect(JSON.stringify(said)).not.toContain(KEY)
    const [first] = 'outputs' in said ? said.outputs : []
    expect(first && 'url' in first ? first.url : '').toStartWith(vendor.origin)
    expect(video.outputHeaders?.(`${vendor.origin}/v1beta/files/a`)).toEqual({ 'x-goog-api-key': KEY })
    for (const url of ['https://elsewhere.example/files/a', 'nonsense']) expect(video.outputHeaders?.(url)).toEqual({})
  })

  test.each(CASES.filter((given) => given.kind !== 'google').map(named))('of %s are fetched without it', (_, given) => {
    const { vendor, video } = open(given)
    for (const url of [`${vendor.origin}/file`, 'https://elsewhere.example/a'])
      expect(video.outputHeaders?.(url)).toEqual({})
  })

  const bytesOf = async (output: RemoteOutput | undefined) => {
    if (!output || !('open' in output)) throw new Error('nothing to open')
    return Buffer.from(await new Response(await output.open(SIGNAL)).arrayBuffer())
  }
  const firstOf = async (video: VideoProvider) => {
    const said = await video.status(VERTEX.operation, SIGNAL)
    return 'outputs' in said ? said.outputs[0] : undefined
  }

  test('of google-vertex come with the answer', async () => {
    const { video } = open(VERTEX, whole(fixture('google-vertex', 'done')))
    expect((await bytesOf(await firstOf(video))).toString('base64')).toBe('AAAAIGZ0eXBpc29t')
  })

  test('or lie in a bucket, which is opened with the credentials', async () => {
    const vendor = startVendor(
      whole(fixture('google-vertex', 'done-in-bucket')),
      whole('the film'),
      whole('', { status: 404 }),
      whole('', { status: 403 }),
    )
    started.push(vendor)
    const options = { project: 'p1', storage_url: vendor.origin }
    const { video } = createProvider(
      partsOf({ kind: 'google-vertex', key: KEY, base_url: vendor.origin + VERTEX_HOME, options }),
    )
    if (!video) throw new Error('no videos here')
    const output = await firstOf(video)
    expect((await bytesOf(output)).toString()).toBe('the film')
    expectSent(vendor.requests[1], {
      method: 'GET',
      path: '/bucket-1/out%20put/sample_0.mp4',
      headers: { authorization: `Bearer ${KEY}` },
    })
    expect((await errorOf(bytesOf(output))).code).toBe('output_gone')
    expect((await errorOf(bytesOf(output))).code).toBe('bad_upstream_response')
  })
})

describe('media that google takes only as bytes', () => {
  const opened = (read: (value: string) => Promise<{ bytes: Uint8Array; content_type: string }>) => {
    const vendor = startVendor(whole(fixture('google', 'accepted')))
    started.push(vendor)
    const media = { read, check: () => Promise.resolve() }
    const { video } = createProvider({ ...partsOf({ kind: 'google', key: KEY, base_url: vendor.url }), media })
    if (!video) throw new Error('no videos here')
    return { vendor, video }
  }

  test('are fetched from their address before the order', async () => {
    const { vendor, video } = opened(async () => ({ bytes: Buffer.from(PNG, 'base64'), content_type: 'image/webp' }))
    await video.start(callOf(GOOGLE, { image: PICTURE, images: ['gs://bucket/a.png'] }), SIGNAL)
    expect(vendor.requests[0]?.json().instances).toEqual([
      {
        prompt: 'A red kite',
        image: { bytesBase64Encoded: Buffer.from(PNG, 'base64').toString('base64'), mimeType: 'image/webp' },
        referenceImages: [{ image: { gcsUri: 'gs://bucket/a.png', mimeType: 'image/png' }, referenceType: 'asset' }],
      },
    ])
  })

  test('and when they cannot be, nothing was ordered', async () => {
    const { vendor, video } = opened(() => Promise.reject(new GatewayError('invalid_value', 'It is not there.')))
    const error = await errorOf(video.start(callOf(GOOGLE, { image: PICTURE }), SIGNAL))
    expect(error.detail).toMatchObject({ param: 'image', taken: 'no' })
    expect(vendor.requests).toHaveLength(0)
  })
})

describe('google-vertex is entered', () => {
  /** The vendor is also the one that gives tokens. */
  const opened = async (credentials: Record<string, unknown> | undefined, config: Partial<ProviderConfig> = {}) => {
    const vendor = startVendor()
    started.push(vendor)
    const options = credentials
      ? { project: 'p1', credentials: { ...credentials, token_uri: `${vendor.origin}/token` } }
      : {}
    const parts = partsOf({ kind: 'google-vertex', base_url: vendor.origin + VERTEX_HOME, options, ...config })
    const { video } = createProvider(parts)
    if (!video) throw new Error('no videos here')
    return { vendor, video, clock: parts.clock }
  }
  const granted = (access_token: string) => whole({ access_token, expires_in: 3600, token_type: 'Bearer' })
  const pending = () => whole(fixture('google-vertex', 'pending'))

  test('by an express key, which is no bearer', async () => {
    const { vendor, video } = await opened(undefined, { key: KEY })
    vendor.answer(whole(fixture('google-vertex', 'accepted')))
    await video.start(callOf(VERTEX, {}), SIGNAL)
    expect(vendor.requests[0]?.headers).toMatchObject({ 'x-goog-api-key': KEY })
    expect(vendor.requests[0]?.headers.authorization).toBeUndefined()
  })

  test('by a service account: a signed claim for a token, which is kept until shortly before its end', async () => {
    const pair = await crypto.subtle.generateKey(
      { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
      true,
      ['sign', 'verify'],
    )
    const body = Buffer.from(await crypto.subtle.exportKey('pkcs8', pair.privateKey)).toString('base64')
    const private_key = `-----BEGIN PRIVATE KEY-----\n${body.replace(/(.{64})/g, '$1\n')}\n-----END PRIVATE KEY-----\n`
    const account = { type: 'service_account', client_email: 'a@p1.example', private_key, private_key_id: 'k1' }
    const { vendor, video, clock } = await opened(account)
    vendor.answer(granted('token-1'), pending(), pending(), granted('token-2'), pending())
    await video.status(VERTEX.operation, SIGNAL)
    clock.advance(3479_000)
    await video.status(VERTEX.operation, SIGNAL)
    clock.advance(1_000)
    await video.status(VERTEX.operation, SIGNAL)
    expect(vendor.requests.map(({ path, headers }) => [path.split(':')[1] ?? path, headers.authorization])).toEqual([
      ['/token', undefined],
      ['fetchPredictOperation', 'Bearer token-1'],
      ['fetchPredictOperation', 'Bearer token-1'],
      ['/token', undefined],
      ['fetchPredictOperation', 'Bearer token-2'],
    ])
    const form = new URLSearchParams(vendor.requests[0]?.body)
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
    const [head = '', claims = '', signature = ''] = form.get('assertion')?.split('.') ?? []
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' })
    const now = (clock.now() - 3480_000) / 1000
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({
      iss: 'a@p1.example',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      aud: `${vendor.origin}/token`,
      iat: now,
      exp: now + 3600,
    })
    const signed = Buffer.from(`${head}.${claims}`)
    expect(
      await crypto.subtle.verify('RSASSA-PKCS1-v1_5', pair.publicKey, Buffer.from(signature, 'base64url'), signed),
    ).toBe(true)
  })

  test('by a user\u2019s login, which is refreshed', async () => {
    const { vendor, video } = await opened({
      type: 'authorized_user',
      client_id: 'c',
      client_secret: 's',
      refresh_token: 'r',
    })
    vendor.answer(granted('token-1'), pending())
    await video.status(VERTEX.operation, SIGNAL)
    expect(Object.fromEntries(new URLSearchParams(vendor.requests[0]?.body))).toEqual({
      grant_type: 'refresh_token',
      client_id: 'c',
      client_secret: 's',
      refresh_token: 'r',
    })
  })

  test.each<[string, Record<string, unknown>, Answer[]]>([
    [
      'refused',
      { type: 'authorized_user', client_id: 'c', client_secret: 'canary', refresh_token: 'r' },
      [whole({ error: 'invalid_grant' }, { status: 400 })],
    ],
    ['empty', { type: 'authorized_user', client_id: 'c', client_secret: 'canary', refresh_token: 'r' }, [whole({})]],
    ['not to be had with a broken key', { type: 'service_account', client_email: 'a', private_key: 'canary' }, []],
    ['not to be had with nothing', { type: 'service_account', secret: 'canary' }, []],
  ])('not at all when the token is %s: nothing was ordered', async (_, credentials, answers) => {
    const { vendor, video } = await opened(credentials)
    vendor.answer(...answers)
    const error = await errorOf(video.start(callOf(VERTEX, {}), SIGNAL))
    expect([error.code, error.detail.taken]).toEqual(['upstream_auth', 'no'])
    expect(error.message).not.toContain('canary')
    expect(vendor.requests).toHaveLength(answers.length)
  })

  test.each<[string, ProviderConfig, Record<string, string>]>([
    ['credentials without a project', { options: { credentials: 'metadata' } }, {}],
    ['a location that is none', { options: { project: 'p', location: 'evil.example/', credentials: 'metadata' } }, {}],
    ['nothing', { options: { project: 'p' } }, {}],
  ])('not with %s, which is said at once', (_, config, environment) => {
    expect(() => createProvider(partsOf({ kind: 'google-vertex', ...config }, environment))).toThrow('providers.acme')
  })
})

describe('through the whole house, from the order to the file', () => {
  const FILM_BYTES = Buffer.from('AAAAIGZ0eXBpc29tAAACAGlzb21pc28yYXZjMW1wNDE=', 'base64')

  /** The files of the fixture lie at the vendor. */
  const doneAt = (kind: string, origin: string) =>
    JSON.parse(
      JSON.stringify(fixture(kind, 'done'))
        .replace(/https:\/\/(?!generativelanguage)[^"]+\.mp4[^"]*/g, `${origin}/made.mp4`)
        .replace('AAAAIGZ0eXBpc29t', FILM_BYTES.toString('base64')),
    )

  test.each(CASES.map(named))('%s makes a video that is kept here', async (kind, given) => {
    const vendor = startVendor()
    started.push(vendor)
    const [first = ''] = Object.keys(given.states)
    const answers = [
      whole(fixture(kind, 'accepted')),
      whole(fixture(kind, first), { status: given.statuses?.[first] ?? 200 }),
      whole('busy', { status: 503 }),
      whole(doneAt(kind, vendor.origin)),
    ]
    const film = whole(FILM_BYTES.toString('latin1'), { headers: { 'content-type': 'video/mp4' } })
    vendor.otherwise((wire) => (/made|files/.test(wire.request.path) ? film : (answers.shift() ?? film))(wire))
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-vendors-'))
    await using house = await startGateway({
      providers: {
        acme: { kind, key: KEY, base_url: vendor.origin + given.version, private_addresses: true, ...given.config },
      },
      models: { [`acme/${given.model}`]: { families: ['video-generation'], video: { n: 4 } } },
      outputs: { ...DEFAULT_OUTPUTS, directory },
    })
    const { tasks } = house.gateway
    const { n = 1, ...order } = { size: '720p', duration: 5, ...given.order }
    const { task } = await tasks.submit({
      request: { model: `acme/${given.model}`, prompt: 'A red kite', ...order, ...(n > 1 ? { n } : {}) },
      family: 'video-generation',
      caller: { token_id: 't1', mayUseModel: () => true, mayUseFamily: () => true },
      base_url: 'https://gate.example',
    })
    const look = async () => (await tasks.findAny(task.task_id)) ?? task
    for (let round = 0; round < 40 && !['SUCCESS', 'FAILURE'].includes((await look()).status); round++) {
      await tasks.idle()
      house.clock.advance(20_000)
    }
    const ended = await look()
    expect([ended.status, ended.fail_code, ended.fail_reason]).toEqual(['SUCCESS', '', ''])
    const [file] = ended.outputs
    expect(file).toMatchObject({ content_type: 'video/mp4', bytes: FILM_BYTES.length })
    expect(JSON.stringify(ended.outputs)).not.toContain(vendor.origin)
    const orders = vendor.requests.filter(({ path }) => path === given.sent.path)
    expect(orders).toHaveLength(1)
    expect(house.logged()).not.toContain(KEY)
    await rm(directory, { recursive: true })
  })
})

describe('presets', () => {
  test.each([
    ['fal', 'FAL_KEY'],
    ['replicate', 'REPLICATE_API_TOKEN'],
    ['minimax', 'MINIMAX_API_KEY'],
    ['black-forest-labs', 'BFL_API_KEY'],
  ])('%s is a vendor of videos, with the key of %s; a key alone brings no provider', (preset, name) => {
    const provider = createProvider(partsOf({ preset }, { [name]: KEY }))
    expect([provider.kind as string, provider.chat, typeof provider.video]).toEqual([preset, undefined, 'object'])
    expect(discoverProviders({ [name]: KEY })).toEqual({})
  })

  test.each([
    ['xai', 'XAI_API_KEY'],
    ['alibaba', 'DASHSCOPE_API_KEY'],
    ['gemini', 'GEMINI_API_KEY'],
  ])('%s chats and makes videos with one key', (preset, name) => {
    for (const provider of [
      createProvider(partsOf({ preset }, { [name]: KEY })),
      createProvider(partsOf({ preset, key: KEY, headers: { 'x-team': 'blue' } })),
    ]) {
      expect([provider.kind, typeof provider.chat, typeof provider.video]).toEqual(['chatcompat', 'object', 'object'])
    }
    // Without a key there is nobody to pay; at an address of the operator's own nobody knows where videos are made.
    expect(createProvider(partsOf({ preset })).video).toBeUndefined()
    expect(createProvider(partsOf({ preset, key: KEY, base_url: 'https://proxy.example/v1' })).video).toBeUndefined()
  })

  test('of chat alone stay so', () => {
    expect(createProvider(partsOf({ preset: 'groq', key: KEY })).video).toBeUndefined()
  })
})
