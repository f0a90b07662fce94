/** The vendors of videos behind AI SDK packages, one row each: their requests, their responses, and what these mean. */
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderKind } from '../../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../../src/config/schema/schema.ts'
import type { RemoteOutput, TaskProgress } from '../../src/providers/provider.ts'
import type { ErrorCode } from '../../src/spec/error.ts'
import type { FailCode, Json } from '../../src/spec/task.ts'
import type { VideoOrder } from '../../src/spec/video-request.ts'
import { type Answer, whole } from './vendor.ts'

export const KEY = 'key-canary-of-the-operator'
/** The first bytes of a PNG, in base64. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUg'
export const PNG_URI = `data:image/png;base64,${PNG}`
export const PICTURE = 'https://files.example/a.png'
export const FILM = 'https://files.example/a.mp4'

export type Sent = { method?: string; path: string; body?: unknown; headers?: Record<string, string> }
export type Refusal = {
  title: string
  answer: Answer
  code: ErrorCode
  accepted: 'no' | undefined
  retry_after?: number
}
type Media = { title: string; order: Partial<VideoOrder>; model?: string; body: Record<string, unknown> }

export type Case = {
  kind: ProviderKind
  /** The path of the base URL. */
  version: string
  config?: Partial<ProviderConfig>
  model: string
  order?: Partial<VideoOrder>
  sent: Sent
  operation: Json
  query: Sent
  /** The status with which fixtures come, where it is not 200. */
  statuses?: Record<string, number>
  /** Fixture -> the progress of the task. */
  states: Record<string, TaskProgress>
  /** A response with an unknown state. */
  unknownState: Answer
  refusals: Refusal[]
  media: Media[]
  /** Orders that are refused before anything is sent, by field. */
  unsupported: { order: Partial<VideoOrder>; model?: string; param: string }[]
  cancels?: Sent
}

export const fixture = (kind: string, name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dir, '../fixtures', kind, `${name}.json`), 'utf8'))

export const refusal = (status: number, body: unknown, code: ErrorCode, accepted: 'no' | 'open' = 'no'): Refusal => ({
  title: `${status} ${JSON.stringify(body)}`,
  answer: whole(body, { status }),
  code,
  accepted: accepted === 'no' ? 'no' : undefined,
})
const limited = (body: unknown): Refusal => ({
  title: '429 with retry-after',
  answer: whole(body, { status: 429, headers: { 'retry-after': '17' } }),
  code: 'rate_limit_exceeded',
  accepted: 'no',
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
export const FAL: Case = {
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
  query: { path: FAL_REQUEST, headers: { authorization: `Key ${KEY}` } },
  statuses: {
    pending: 400,
    'failed-policy': 422,
    'failed-input': 422,
    'failed-media': 422,
    'failed-internal': 500,
    canceled: 422,
    'canceled-by-app': 499,
  },
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
    canceled: CANCELED,
    'canceled-by-app': CANCELED,
  },
  unknownState: whole({ detail: 'Request is still in progress' }, { status: 400 }),
  refusals: [
    refusal(401, { detail: 'Cannot access application. Authentication is required.' }, 'upstream_auth'),
    refusal(403, { detail: 'User is locked. Reason: Exhausted balance.' }, 'insufficient_quota'),
    refusal(422, fixture('fal', 'failed-input'), 'upstream_invalid_request'),
    refusal(422, fixture('fal', 'failed-policy'), 'content_policy_violation'),
    refusal(404, { detail: 'Application not found' }, 'model_not_found'),
    limited({ detail: 'Too many requests' }),
  ],
  media: [
    { title: 'the first frame is image_url', order: { image: PNG }, body: { image_url: PNG_URI } },
    { title: 'a URL is passed on unchanged', order: { image: PICTURE }, body: { image_url: PICTURE } },
    { title: 'the video is video_url', order: { video: FILM }, body: { video_url: FILM } },
    {
      title: 'other models have the duration with a unit',
      order: {},
      model: 'fal-ai/kling-video/v2.6/pro/text-to-video',
      body: { duration: '4' },
    },
    {
      title: 'further models have it as a number',
      order: { seed: 0 },
      model: 'fal-ai/sora-2/text-to-video',
      body: { duration: 4, seed: 0 },
    },
  ],
  unsupported: [
    { order: { last_image: PNG }, param: 'last_image' },
    { order: { images: [PNG] }, param: 'images' },
    { order: { n: 2 }, param: 'n' },
  ],
  cancels: { method: 'PUT', path: `${FAL_REQUEST}/cancel`, headers: { authorization: `Key ${KEY}` } },
}

const PREDICTION = '/v1/predictions/gm3qorzdhgbfurvjtvhg6dckhu'
const DELIVERED = 'https://replicate.delivery/xezq/9Ew9vWcVf/tmp.mp4'
export const REPLICATE: Case = {
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
  query: { path: PREDICTION, headers: { authorization: `Bearer ${KEY}` } },
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
  unknownState: whole({ ...(fixture('replicate', 'starting') as object), status: 'thinking' }),
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
    { title: 'the first frame is image', order: { image: PNG }, body: { image: PNG_URI } },
    { title: 'pixels are size', order: { size: '1280x720' }, body: { size: '1280x720' } },
    { title: 'the video is video', order: { video: FILM }, body: { video: FILM } },
  ],
  unsupported: [
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
export const GOOGLE: Case = {
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
  query: { path: `/v1beta/${GOOGLE_OPERATION}`, headers: { 'x-goog-api-key': KEY } },
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
  unknownState: whole({ name: GOOGLE_OPERATION, metadata: { state: 'DREAMING' } }),
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
      title: 'frames and references are bytes',
      order: { image: PNG, last_image: PNG },
      body: { instances: [{ prompt: 'A red kite', image: veoImage, lastFrame: veoImage }] },
    },
    {
      title: 'references are assets',
      order: { images: [PNG] },
      body: { instances: [{ prompt: 'A red kite', referenceImages: [{ image: veoImage, referenceType: 'asset' }] }] },
    },
  ],
  unsupported: [
    { order: { video: FILM }, param: 'video' },
    { order: { last_image: PNG, images: [PNG] }, param: 'images' },
    { order: { audio_enable: true }, model: 'veo-2.0-generate-001', param: 'audio_enable' },
  ],
}

export const VERTEX_HOME = '/v1/projects/p1/locations/us-central1/publishers/google'
const VERTEX_MODEL = 'veo-3.1-generate-001'
const VERTEX_OPERATION = `${VERTEX_HOME.slice('/v1/'.length)}/models/${VERTEX_MODEL}/operations/a1b07c8e-7b5a-4aba-bb34-3e1ccb8afcc8`
export const VERTEX: Case = {
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
  query: {
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
  unknownState: whole({ name: VERTEX_OPERATION, done: false }),
  refusals: veoRefusals,
  media: [
    {
      title: 'frames are bytes',
      order: { image: PNG_URI, last_image: PNG },
      body: { instances: [{ prompt: 'A red kite', image: veoImage, lastFrame: veoImage }] },
    },
  ],
  unsupported: [
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
  query: { path: `/api/v1/tasks/${WAN_TASK}`, headers: { authorization: `Bearer ${KEY}` } },
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
  unknownState: whole({ output: { task_id: WAN_TASK, task_status: 'SUSPENDED' }, request_id: 'r' }),
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
      title: 'the first frame is img_url, and the size a tier',
      order: { image: PNG },
      model: 'wan2.5-i2v-preview',
      body: {
        input: { prompt: 'A red kite', img_url: PNG_URI },
        parameters: { duration: 4, resolution: '720P', audio: false },
      },
    },
    {
      title: 'wan2.7 has a tier and a ratio',
      order: { aspect_ratio: '9:16', audio_enable: true, size: '1080p' },
      model: 'wan2.7-t2v',
      body: { parameters: { duration: 4, resolution: '1080P', ratio: '9:16' } },
    },
    {
      title: 'wan3 accepts frames and references together',
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
      title: 'a ratio becomes pixels for older models',
      order: { aspect_ratio: '3:4', size: '1080p' },
      body: { parameters: { duration: 4, size: '1248*1632', audio: false } },
    },
  ],
  unsupported: [
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
  query: { path: '/v2/query/video_generation/424010985738629', headers: { authorization: `Bearer ${KEY}` } },
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
  unknownState: whole({ task: { id: '424010985738629', status: 'reviewing' } }),
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
      title: 'frames have roles, and determine the ratio',
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
      title: 'references have roles',
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
  unsupported: [
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
export const XAI: Case = {
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
  query: { path: `/v1/videos/${XAI_REQUEST}`, headers: { authorization: `Bearer ${KEY}` } },
  statuses: { pending: 202, running: 202 },
  states: {
    pending: { progress: 0 },
    running: { status: 'IN_PROGRESS', progress: 42 },
    done: success({ url: 'https://vidgen.x.ai/xai-vidgen-bucket/xai-video-aa87081b.mp4', content_type: 'video/mp4' }),
    'done-without': NOTHING_MADE,
    'done-filtered': failure('content_policy_violation', 'The result was removed by a filter.'),
    failed: failure('generation_failed', 'The video could not be generated.'),
    'failed-policy': failure('content_policy_violation', ANY),
    'failed-text': failure('content_policy_violation', ANY),
    expired: failure('generation_failed', ANY),
  },
  unknownState: whole({ status: 'reviewing', model: 'grok-imagine-video' }),
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
      title: 'portrait is a ratio and a tier',
      order: { aspect_ratio: '9:16', size: '1080x1920' },
      body: { aspect_ratio: '9:16', resolution: '1080p' },
    },
    {
      title: 'frames are image and last_frame',
      order: { image: PNG, last_image: PICTURE },
      body: { image: { url: PNG_URI }, last_frame: { url: PICTURE } },
    },
    {
      title: 'references are reference_images',
      order: { images: [PNG, PICTURE] },
      body: { reference_images: [{ url: PNG_URI }, { url: PICTURE }] },
    },
  ],
  unsupported: [
    { order: { negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { n: 2 }, param: 'n' },
    { order: { size: '1440x1440' }, param: 'size' },
    { order: { image: PNG, last_image: PNG }, model: 'grok-imagine-video', param: 'last_image' },
  ],
}

const FLUX_ID = '5c9e7f0a-0c0b-4f0e-9a0a-3b6f6a1f2f11'
export const BLACK_FOREST_LABS: Case = {
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
  query: { path: `/v1/get_result?id=${FLUX_ID}`, headers: { 'x-key': KEY } },
  states: {
    pending: {},
    running: { status: 'IN_PROGRESS', progress: 37 },
    done: success({ url: 'https://delivery-eu1.bfl.ai/results/5c/9e/sample.mp4?se=2026', content_type: 'video/mp4' }),
    'done-without': NOTHING_MADE,
    failed: failure('generation_failed', 'Error: worker lost'),
    'failed-policy': failure('content_policy_violation', 'Request Moderated: Safety Filter'),
    'failed-output': failure('content_policy_violation', 'Content Moderated.'),
  },
  unknownState: whole({ id: FLUX_ID, status: 'Dreaming', result: null }),
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
      title: 'frames are keyframes: a URL or bytes',
      order: { duration: 5, image: PNG_URI, last_image: PICTURE },
      body: { mode: 'i2v', keyframes: [PNG, PICTURE] },
    },
    { title: 'a video is continued', order: { duration: 5, video: FILM }, body: { mode: 'v2v', start_video: FILM } },
  ],
  unsupported: [
    { order: {}, param: 'duration' },
    { order: { duration: 21 }, param: 'duration' },
    { order: { duration: 5, aspect_ratio: '5:4' }, param: 'aspect_ratio' },
    { order: { duration: 5, images: [PNG] }, param: 'images' },
    { order: { duration: 5, negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { duration: 5, n: 2 }, param: 'n' },
  ],
}

export const CASES = [FAL, REPLICATE, GOOGLE, VERTEX, ALIBABA, MINIMAX, XAI, BLACK_FOREST_LABS]
