/** The native adapters of video vendors, each against a loopback server that responds in the vendor's format. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { createLog } from '../src/kit/log.ts'
import type { Media } from '../src/providers/media.ts'
import type { TaskProgress, VideoCall, VideoProvider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { createTransport } from '../src/providers/upstream/transport.ts'
import { type ErrorCode, GatewayError } from '../src/spec/error.ts'
import type { FailCode, Json } from '../src/spec/task.ts'
import type { VideoOrder } from '../src/spec/video-request.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { type Answer, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'key-of-the-operator'
const SIGNAL = new AbortController().signal
const PNG = 'iVBORw0KGgoAAAANSUhEUg'
const TASK_ID = 'task_0123456789abcdefghijABCDEFGHIJ45'

type ExpectedRequest = { method?: string; path: string; body?: unknown; headers?: Record<string, string> }
type Refusal = { title: string; answer: Answer; code: ErrorCode; accepted: 'no' | undefined; retry_after?: number }

type Case = {
  kind: ProviderKind
  /** Distinguishes several APIs of one kind. */
  title?: string
  /** The fixture of the response to an order. Default: accepted. */
  accepted?: string
  /** The path of the base URL. */
  version: string
  config?: Partial<ProviderConfig>
  model: string
  order: Partial<VideoOrder>
  sent: ExpectedRequest
  operation: Json
  statusRequest: ExpectedRequest
  /** By fixture: the task progress that it contains; `{origin}` is the vendor's. */
  states: Record<string, TaskProgress>
  /** A response with an unknown state. */
  unknownState: unknown
  refusals: Refusal[]
  images: { title: string; order: Partial<VideoOrder>; model?: string; sent: ExpectedRequest }[]
  /** Orders that are rejected before a request is sent, by field. */
  unsupported: { order: Partial<VideoOrder>; model?: string; param: string }[]
  cancelRequest?: ExpectedRequest
}

const fixture = (kind: string, name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dir, 'fixtures', kind, `${name}.json`), 'utf8'))

const refusal = (status: number, body: unknown, code: ErrorCode, accepted?: 'no'): Refusal => ({
  title: `${status} ${JSON.stringify(body)}`,
  answer: whole(body, { status }),
  code,
  accepted,
})
const limited = (body: unknown): Refusal => ({
  title: '429 with retry-after',
  answer: whole(body, { status: 429, headers: { 'retry-after': '17' } }),
  code: 'rate_limit_exceeded',
  accepted: 'no',
  retry_after: 17,
})

const RUNWAY_TASK = '/v1/tasks/17f20503-6c24-4c16-946b-35dbbce2af2f'
const RUNWAY: Case = {
  kind: 'runway',
  version: '/v1',
  model: 'gen4.5',
  order: { seed: 7, metadata: { runway: { model: 'other', duration: 10, outputFormat: 'mp4' }, luma: { loop: true } } },
  sent: {
    path: '/v1/text_to_video',
    headers: { authorization: `Bearer ${KEY}`, 'x-runway-version': '2024-11-06', 'content-type': 'application/json' },
    body: {
      model: 'gen4.5',
      promptText: 'A red kite',
      ratio: '1280:720',
      duration: 4,
      seed: 7,
      outputFormat: 'mp4',
    },
  },
  operation: { id: '17f20503-6c24-4c16-946b-35dbbce2af2f' },
  statusRequest: { path: RUNWAY_TASK },
  states: {
    queued: { status: 'QUEUED' },
    throttled: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS', progress: 42 },
    done: {
      status: 'SUCCESS',
      outputs: [{ url: 'https://dnznrvs05pmza.cloudfront.net/0b1c2d3e.mp4?_jwt=eyJhbGciOi' }],
    },
    'failed-policy': {
      status: 'FAILURE',
      fail_code: 'content_policy_violation',
      fail_reason: 'Your content was flagged.',
    },
    'failed-asset': {
      status: 'FAILURE',
      fail_code: 'input_media_invalid',
      fail_reason: 'The asset could not be read.',
    },
    'failed-internal': {
      status: 'FAILURE',
      fail_code: 'upstream_error',
      fail_reason: 'An unexpected error occurred.',
    },
    canceled: { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'The task was canceled at the upstream.' },
  },
  unknownState: { id: 'x', status: 'UPSCALING' },
  refusals: [
    refusal(401, { error: 'The API key is not valid.' }, 'upstream_auth', 'no'),
    refusal(400, { error: 'You do not have enough credits to run this task.' }, 'insufficient_quota', 'no'),
    refusal(400, { error: '`ratio` must be one of 1280:720' }, 'upstream_invalid_request', 'no'),
    refusal(400, { error: 'The prompt did not pass our content moderation.' }, 'content_policy_violation', 'no'),
    limited({ error: 'Too many requests' }),
  ],
  images: [
    {
      title: 'one image by URL is the first frame',
      order: { image: 'https://files.example/a.png' },
      sent: {
        path: '/v1/image_to_video',
        body: {
          model: 'gen4.5',
          promptText: 'A red kite',
          promptImage: 'https://files.example/a.png',
          ratio: '1280:720',
          duration: 4,
        },
      },
    },
    {
      title: 'two frames have their positions; base64 becomes a data URI',
      order: { image: PNG, last_image: 'data:image/jpeg;base64,/9j/4A', aspect_ratio: '9:16', size: '1080p', seed: 3 },
      model: 'veo3.1',
      sent: {
        path: '/v1/image_to_video',
        body: {
          model: 'veo3.1',
          promptText: 'A red kite',
          promptImage: [
            { uri: `data:image/png;base64,${PNG}`, position: 'first' },
            { uri: 'data:image/jpeg;base64,/9j/4A', position: 'last' },
          ],
          ratio: '1080:1920',
          duration: 4,
          seed: 3,
          audio: false,
        },
      },
    },
    {
      title: 'references are a list, and an aspect ratio becomes the pixel size of the model',
      order: { images: ['https://files.example/a.png'], aspect_ratio: '4:3', audio_enable: true },
      model: 'seedance2',
      sent: {
        path: '/v1/text_to_video',
        body: {
          model: 'seedance2',
          promptText: 'A red kite',
          references: [{ uri: 'https://files.example/a.png' }],
          ratio: '1112:834',
          duration: 4,
          audio: true,
        },
      },
    },
  ],
  unsupported: [
    { order: { audio_enable: true }, param: 'audio_enable' },
    { order: { last_image: PNG }, param: 'last_image' },
    { order: { negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { video: 'https://files.example/a.mp4' }, param: 'video' },
    { order: { n: 2 }, param: 'n' },
  ],
  cancelRequest: { method: 'DELETE', path: RUNWAY_TASK },
}

const LUMA_ID = '7a1c6f1e-2b3d-4c5e-8f90-123456789abc'
const LUMA: Case = {
  kind: 'luma',
  version: '/dream-machine/v1',
  model: 'ray-2',
  order: { seed: 7, duration: 5, metadata: { luma: { loop: true, model: 'other', concepts: [{ key: 'pan' }] } } },
  sent: {
    path: '/dream-machine/v1/generations/video',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: {
      model: 'ray-2',
      prompt: 'A red kite',
      aspect_ratio: '16:9',
      duration: '5s',
      resolution: '720p',
      loop: true,
      concepts: [{ key: 'pan' }],
    },
  },
  operation: { id: LUMA_ID },
  statusRequest: { path: `/dream-machine/v1/generations/${LUMA_ID}` },
  states: {
    queued: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS' },
    done: { status: 'SUCCESS', outputs: [{ url: 'https://storage.cdn-luma.com/dream_machine/7a1c/result.mp4' }] },
    'done-empty': {
      status: 'FAILURE',
      fail_code: 'no_output',
      fail_reason: 'The upstream "acme" reported success, but returned no file.',
    },
    'failed-policy': {
      status: 'FAILURE',
      fail_code: 'content_policy_violation',
      fail_reason: '400 prompt not allowed because advanced moderation failed',
    },
    failed: { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'Frame could not be made' },
  },
  unknownState: { id: LUMA_ID, state: 'upscaling' },
  refusals: [
    refusal(401, { detail: 'Not authenticated' }, 'upstream_auth', 'no'),
    refusal(400, { detail: 'Insufficient credits' }, 'insufficient_quota', 'no'),
    refusal(400, { detail: 'Prompt is required' }, 'upstream_invalid_request', 'no'),
    refusal(
      422,
      { detail: [{ type: 'missing', loc: ['body', 'model'], msg: 'Field required' }] },
      'upstream_invalid_request',
      'no',
    ),
    refusal(400, { detail: 'Failed due to moderation' }, 'content_policy_violation', 'no'),
    limited({ detail: 'Too many concurrent generations' }),
  ],
  images: [
    {
      title: 'the frames are keyframes with their URLs',
      order: { image: 'https://files.example/a.png', last_image: 'https://files.example/b.png', size: '1920x1080' },
      sent: {
        path: '/dream-machine/v1/generations/video',
        body: {
          model: 'ray-2',
          prompt: 'A red kite',
          aspect_ratio: '16:9',
          duration: '4s',
          resolution: '1080p',
          keyframes: {
            frame0: { type: 'image', url: 'https://files.example/a.png' },
            frame1: { type: 'image', url: 'https://files.example/b.png' },
          },
        },
      },
    },
  ],
  unsupported: [
    { order: { image: PNG }, param: 'image' },
    { order: { last_image: `data:image/png;base64,${PNG}` }, param: 'last_image' },
    { order: { audio_enable: true }, param: 'audio_enable' },
    { order: { images: [PNG] }, param: 'images' },
    { order: { negative_prompt: 'rain' }, param: 'negative_prompt' },
  ],
  cancelRequest: { method: 'DELETE', path: `/dream-machine/v1/generations/${LUMA_ID}` },
}

const KLING: Case = {
  kind: 'kling',
  version: '/v1',
  model: 'kling-v2-6',
  order: {
    duration: 5,
    negative_prompt: 'rain',
    audio_enable: true,
    size: '1080p',
    seed: 7,
    metadata: { kling: { cfg_scale: 0.4, external_task_id: 'mine', model: 'other' } },
  },
  sent: {
    path: '/v1/videos/text2video',
    headers: { authorization: `Bearer ${KEY}` },
    body: {
      model_name: 'kling-v2-6',
      prompt: 'A red kite',
      negative_prompt: 'rain',
      aspect_ratio: '16:9',
      mode: 'pro',
      duration: '5',
      sound: 'on',
      external_task_id: TASK_ID,
      cfg_scale: 0.4,
    },
  },
  operation: { id: '831234567890123456', way: 'text2video' },
  statusRequest: { path: '/v1/videos/text2video/831234567890123456' },
  states: {
    queued: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS' },
    done: { status: 'SUCCESS', outputs: [{ url: 'https://v1-kling.example/ksc2/83ab.mp4' }] },
    'failed-policy': {
      status: 'FAILURE',
      fail_code: 'content_policy_violation',
      fail_reason: 'Failure to pass the risk control system',
    },
    failed: { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'Internal fault' },
  },
  unknownState: { code: 0, data: { task_id: '83', task_status: 'reviewing' } },
  refusals: [
    refusal(401, { code: 1002, message: 'access key not found', request_id: 'x' }, 'upstream_auth', 'no'),
    refusal(429, { code: 1102, message: 'Account balance not enough' }, 'insufficient_quota', 'no'),
    refusal(403, { code: 1103, message: 'no access to this api' }, 'upstream_auth', 'no'),
    refusal(400, { code: 1201, message: 'Duration value is invalid' }, 'upstream_invalid_request', 'no'),
    refusal(404, { code: 1203, message: 'Model is not found' }, 'model_not_found', 'no'),
    refusal(400, { code: 1301, message: 'Risk control' }, 'content_policy_violation', 'no'),
    refusal(429, { code: 1303, message: 'parallel task over resource pack limit' }, 'rate_limit_exceeded', 'no'),
    limited({ code: 1302, message: 'too frequent' }),
    refusal(200, { code: 1301, message: 'Risk control' }, 'content_policy_violation', 'no'),
    refusal(200, { code: 1101, message: 'in arrears' }, 'insufficient_quota', 'no'),
    refusal(200, { code: 5002, message: 'timeout' }, 'upstream_timeout'),
    refusal(200, { code: 7777, message: 'who knows' }, 'bad_upstream_response'),
    refusal(504, { code: 5002, message: 'timeout' }, 'upstream_timeout'),
  ],
  images: [
    {
      title: 'an order with an image has a path of its own, no ratio, and plain base64',
      order: { image: `data:image/png;base64,${PNG}`, last_image: 'https://files.example/b.png' },
      sent: {
        path: '/v1/videos/image2video',
        body: {
          model_name: 'kling-v2-6',
          prompt: 'A red kite',
          image: PNG,
          image_tail: 'https://files.example/b.png',
          mode: 'std',
          duration: '4',
          external_task_id: TASK_ID,
        },
      },
    },
  ],
  unsupported: [
    { order: { size: '480p' }, param: 'size' },
    { order: { images: [PNG] }, param: 'images' },
    { order: { video: 'https://files.example/a.mp4' }, param: 'video' },
    { order: { n: 2 }, param: 'n' },
  ],
}

const ARK_TASK = '/api/v3/contents/generations/tasks/cgt-20261120194932-6bbjd'
const arkFailure = (fail_code: FailCode): TaskProgress => ({
  status: 'FAILURE',
  fail_code,
  fail_reason: 'The request failed. Request id: 0217',
})
const ARK: Case = {
  kind: 'ark',
  version: '/api/v3',
  model: 'seedance-1-5-pro-251215',
  order: { seed: 7, metadata: { ark: { watermark: true, resolution: '1080p', model: 'other' } } },
  sent: {
    path: '/api/v3/contents/generations/tasks',
    headers: { authorization: `Bearer ${KEY}` },
    body: {
      model: 'seedance-1-5-pro-251215',
      safety_identifier: TASK_ID,
      content: [{ type: 'text', text: 'A red kite' }],
      ratio: '16:9',
      resolution: '720p',
      duration: 4,
      seed: 7,
      generate_audio: false,
      watermark: true,
    },
  },
  operation: { id: 'cgt-20261120194932-6bbjd' },
  statusRequest: { path: ARK_TASK },
  states: {
    queued: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS' },
    done: {
      status: 'SUCCESS',
      outputs: [{ url: 'https://ark-content-generation.tos.example/seedance/021763.mp4?X-Tos-Expires=86400' }],
    },
    canceled: { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'The task was canceled at the upstream.' },
    expired: {
      status: 'FAILURE',
      fail_code: 'timeout',
      fail_reason: 'The task exceeded the time limit of the upstream.',
    },
    'failed-policy': arkFailure('content_policy_violation'),
    'failed-input': arkFailure('invalid_input'),
    'failed-media': arkFailure('input_media_invalid'),
    'failed-internal': arkFailure('upstream_error'),
  },
  unknownState: { id: 'cgt-1', status: 'reviewing' },
  refusals: [
    refusal(401, { error: { code: 'AuthenticationError', message: 'bad key' } }, 'upstream_auth', 'no'),
    refusal(403, { error: { code: 'AccessDenied', message: 'no' } }, 'upstream_auth', 'no'),
    refusal(403, { error: { code: 'AccountOverdueError', message: 'overdue' } }, 'insufficient_quota', 'no'),
    refusal(429, { error: { code: 'QuotaExceeded', message: 'free quota' } }, 'insufficient_quota', 'no'),
    refusal(429, { error: { code: 'ServerOverloaded', message: 'busy' } }, 'server_is_overloaded', 'no'),
    refusal(400, { error: { code: 'InvalidParameter', message: 'ratio' } }, 'upstream_invalid_request', 'no'),
    refusal(
      400,
      { error: { code: 'InputTextSensitiveContentDetected', message: 'the input text' } },
      'content_policy_violation',
      'no',
    ),
    refusal(404, { error: { code: 'ModelNotOpen', message: 'not activated' } }, 'model_not_found', 'no'),
    limited({ error: { code: 'RateLimitExceeded.EndpointRPMExceeded', message: 'slow down' } }),
  ],
  images: [
    {
      title: 'each medium has its role in the content',
      order: {
        image: PNG,
        last_image: 'https://files.example/b.png',
        images: ['https://files.example/c.png'],
        video: 'https://files.example/a.mp4',
        audio_enable: true,
        aspect_ratio: '9:16',
        size: '720x1280',
      },
      model: 'seedance-2-0',
      sent: {
        path: '/api/v3/contents/generations/tasks',
        body: {
          model: 'seedance-2-0',
          safety_identifier: TASK_ID,
          content: [
            { type: 'text', text: 'A red kite' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` }, role: 'first_frame' },
            { type: 'image_url', image_url: { url: 'https://files.example/b.png' }, role: 'last_frame' },
            { type: 'image_url', image_url: { url: 'https://files.example/c.png' }, role: 'reference_image' },
            { type: 'video_url', video_url: { url: 'https://files.example/a.mp4' }, role: 'reference_video' },
          ],
          ratio: '9:16',
          resolution: '720p',
          duration: 4,
          generate_audio: true,
        },
      },
    },
    {
      title: 'a model without sound gets no generate_audio',
      order: {},
      model: 'seedance-1-0-pro-250528',
      sent: {
        path: '/api/v3/contents/generations/tasks',
        body: {
          model: 'seedance-1-0-pro-250528',
          safety_identifier: TASK_ID,
          content: [{ type: 'text', text: 'A red kite' }],
          ratio: '16:9',
          resolution: '720p',
          duration: 4,
        },
      },
    },
  ],
  unsupported: [
    { order: { audio_enable: true }, model: 'seedance-1-0-pro-250528', param: 'audio_enable' },
    { order: { negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { video: 'data:video/mp4;base64,AAAA' }, param: 'video' },
    { order: { n: 3 }, param: 'n' },
  ],
  cancelRequest: { method: 'DELETE', path: ARK_TASK },
}

const compatRefusals: Refusal[] = [
  refusal(401, { error: { message: 'bad key', code: 'invalid_api_key' } }, 'upstream_auth', 'no'),
  refusal(402, { error: { message: 'no money' } }, 'insufficient_quota', 'no'),
  refusal(429, { code: 'insufficient_quota', message: 'used up', data: null }, 'insufficient_quota', 'no'),
  refusal(403, { code: 'insufficient_user_quota', message: 'no quota', data: null }, 'insufficient_quota', 'no'),
  refusal(400, { code: 'invalid_size', message: 'size', data: null }, 'upstream_invalid_request', 'no'),
  refusal(
    400,
    { error: { message: 'Blocked by our content policy.', code: 'content_policy_violation' } },
    'content_policy_violation',
    'no',
  ),
  limited({ error: { message: 'slow down', code: 'rate_limit_exceeded' } }),
  // An earlier order with this key is in progress or done.
  refusal(409, { error: { message: 'in use' } }, 'bad_upstream_response'),
  refusal(422, { error: { message: 'another body', code: 'idempotency_key_reused' } }, 'upstream_invalid_request'),
  // A gateway that does not know the outcome of the order itself.
  refusal(500, { code: 'do_request_failed', message: 'read: timeout', data: null }, 'bad_upstream_response'),
]
const VIDEO_ID = 'video_68d7512d07848190'
const VIDEOS: Case = {
  kind: 'chatcompat-video',
  title: 'videos',
  version: '/v1',
  config: { options: { cancel: 'delete' }, fields: { allow: ['seed', 'negative_prompt', 'last_image'] } },
  model: 'wan-video',
  order: {
    seed: 7,
    negative_prompt: 'rain',
    metadata: { 'chatcompat-video': { fps: 24, model: 'other', size: '1x1' }, wan: { shift: 2 }, model: 'other' },
  },
  sent: {
    path: '/v1/videos',
    headers: { authorization: `Bearer ${KEY}`, 'idempotency-key': `${TASK_ID}:acme/wan-video` },
    body: {
      model: 'wan-video',
      prompt: 'A red kite',
      seconds: '4',
      size: '1280x720',
      seed: 7,
      negative_prompt: 'rain',
      fps: 24,
      metadata: { wan: { shift: 2 } },
    },
  },
  operation: { id: VIDEO_ID },
  statusRequest: { path: `/v1/videos/${VIDEO_ID}` },
  states: {
    queued: { status: 'QUEUED', progress: 0 },
    running: { status: 'IN_PROGRESS', progress: 33 },
    done: { status: 'SUCCESS', outputs: [{ url: `{origin}/v1/videos/${VIDEO_ID}/content` }] },
    'done-elsewhere': { status: 'SUCCESS', outputs: [{ url: 'https://files.example/made.mp4' }] },
    'failed-policy': {
      status: 'FAILURE',
      fail_code: 'content_policy_violation',
      fail_reason: 'Your request was blocked.',
    },
    'failed-own': {
      status: 'FAILURE',
      fail_code: 'input_media_invalid',
      fail_reason: 'The image could not be read.',
    },
  },
  unknownState: { id: VIDEO_ID, status: 'unknown', progress: 12 },
  refusals: compatRefusals,
  images: [
    {
      title: 'the first frame is an object, as in the official API',
      order: { image: PNG, last_image: 'https://files.example/b.png', aspect_ratio: '9:16', size: '1080p' },
      sent: {
        path: '/v1/videos',
        body: {
          model: 'wan-video',
          prompt: 'A red kite',
          seconds: '4',
          size: '1080x1920',
          input_reference: { image_url: `data:image/png;base64,${PNG}` },
          last_image: 'https://files.example/b.png',
        },
      },
    },
  ],
  unsupported: [
    { order: { audio_enable: true }, param: 'audio_enable' },
    { order: { images: [PNG] }, param: 'images' },
    { order: { video: 'https://files.example/a.mp4' }, param: 'video' },
    { order: { n: 2 }, param: 'n' },
  ],
  cancelRequest: { method: 'DELETE', path: `/v1/videos/${VIDEO_ID}` },
}

const FAR_ID = 'task_AbCdEfGhIjKlMnOpQrStUvWxYz012345'
const GENERATIONS: Case = {
  kind: 'chatcompat-video',
  title: 'video-generations',
  accepted: 'gatehouse-accepted',
  version: '/v1',
  config: { options: { api: 'video-generations', cancel: 'post', idempotent: true } },
  model: 'far/text-to-video',
  order: { seed: 7, audio_enable: true, metadata: { runway: { outputFormat: 'mp4' } } },
  sent: {
    path: '/v1/video/generations',
    headers: { authorization: `Bearer ${KEY}`, 'idempotency-key': `${TASK_ID}:acme/far/text-to-video` },
    body: {
      model: 'far/text-to-video',
      prompt: 'A red kite',
      aspect_ratio: '16:9',
      duration: 4,
      size: '720p',
      audio_enable: true,
      seed: 7,
      metadata: { runway: { outputFormat: 'mp4' } },
    },
  },
  operation: { id: FAR_ID },
  statusRequest: { path: `/v1/video/generations/${FAR_ID}` },
  states: {
    'new-api-waiting': { status: 'QUEUED', progress: 0 },
    'new-api-running': { status: 'IN_PROGRESS', progress: 30 },
    'new-api-done': { status: 'SUCCESS', outputs: [{ url: `{origin}/v1/videos/${FAR_ID}/content` }] },
    'new-api-done-old': { status: 'SUCCESS', outputs: [{ url: 'https://files.example/old.mp4' }] },
    'new-api-failed': { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'upstream said no' },
    'gatehouse-done': {
      status: 'SUCCESS',
      outputs: [
        { url: 'https://far.example/v1/videos/task_Ab/content?expires=1&signature=x' },
        { url: 'https://far.example/v1/videos/task_Ab/content?index=1&signature=y' },
      ],
    },
    'gatehouse-failed': {
      status: 'FAILURE',
      fail_code: 'submit_outcome_unknown',
      fail_reason: 'The connection broke.',
    },
  },
  unknownState: { code: 'success', message: '', data: { task_id: FAR_ID, status: 'REVIEWING' } },
  refusals: compatRefusals,
  images: [
    {
      title: 'all fields are forwarded unchanged',
      order: { image: PNG, images: ['https://files.example/c.png'], video: 'https://files.example/a.mp4', n: 2 },
      sent: {
        path: '/v1/video/generations',
        body: {
          model: 'far/text-to-video',
          prompt: 'A red kite',
          aspect_ratio: '16:9',
          duration: 4,
          size: '720p',
          audio_enable: false,
          image: PNG,
          images: ['https://files.example/c.png'],
          video: 'https://files.example/a.mp4',
          n: 2,
        },
      },
    },
  ],
  unsupported: [],
  cancelRequest: { method: 'POST', path: `/v1/video/generations/${FAR_ID}/cancel` },
}

const CASES: Case[] = [RUNWAY, LUMA, KLING, ARK, VIDEOS, GENERATIONS]

let vendor: Vendor | undefined
afterEach(() => vendor?.stop())

type Opened = { vendor: Vendor; clock: ManualClock; video: VideoProvider }

const partsOf = (config: ProviderConfig, environment: Record<string, string> = {}, clock = manualClock()) => {
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const transport = createTransport({ clock, log })
  return { id: 'acme', config, timeouts: DEFAULT_TIMEOUTS, transport, clock, log, environment, manual: async () => [] }
}

function open(given: Case, ...parts: (Answer | { media: Media })[]): Opened {
  vendor = startVendor(...parts.filter((part) => typeof part === 'function'))
  const clock = manualClock()
  const key = given.config?.options?.access_key ? {} : { key: KEY }
  const config = { kind: given.kind, base_url: vendor.origin + given.version, ...key, ...given.config }
  const media = parts.find((part) => typeof part === 'object')
  const { video } = createProvider({ ...partsOf(config, {}, clock), ...media })
  if (!video) throw new Error('the provider has no videos')
  return { vendor, clock, video }
}

const callOf = (given: Case, order: Partial<VideoOrder> = {}, model = given.model): VideoCall => ({
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
  task_id: TASK_ID,
  idempotency_key: `${TASK_ID}:acme/${model}`,
})

async function errorOf(promise: Promise<unknown>): Promise<GatewayError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return thrown
  throw new Error(`expected a GatewayError, found ${thrown}`)
}

function expectSent(request: Vendor['requests'][number] | undefined, sent: ExpectedRequest): void {
  expect(request?.method).toBe(sent.method ?? 'POST')
  expect(request?.path).toBe(sent.path)
  if (sent.body !== undefined) expect(request?.json()).toEqual(sent.body as Record<string, unknown>)
  for (const [name, value] of Object.entries(sent.headers ?? {})) expect(request?.headers[name]).toBe(value)
}

const titled = (given: Case) => [given.title ? `${given.kind} with ${given.title}` : given.kind, given] as const

describe.each(CASES.map(titled))('%s', (_, given) => {
  const { kind } = given
  const accepted = () => whole(fixture(kind, given.accepted ?? 'accepted'))

  test('sends an order in the format of the vendor and stores the id from its response', async () => {
    const { vendor, video } = open(given, accepted())
    expect(await video.start(callOf(given, given.order), SIGNAL)).toEqual({ operation: given.operation })
    expectSent(vendor.requests[0], given.sent)
    expect(vendor.requests).toHaveLength(1)
  })

  test('announces an order right before it leaves, and does not send it if that fails', async () => {
    const { vendor, video } = open(given, accepted())
    const seen: number[] = []
    const beforeSend = async () => void seen.push(vendor.requests.length)
    await video.start({ ...callOf(given, given.order), beforeSend }, SIGNAL)
    expect([...seen, vendor.requests.length, video.awaits_before_send]).toEqual([0, 1, true])
    const refused = video.start({ ...callOf(given), beforeSend: async () => Promise.reject(new Error('full')) }, SIGNAL)
    expect((await errorOf(refused)).detail.accepted).toBe('no')
    expect(vendor.requests).toHaveLength(1)
  })

  test.each(Object.entries(given.states))('reads the task state %s', async (name, progress) => {
    const { vendor, video } = open(given, whole(fixture(kind, name)))
    const text = JSON.stringify(progress).replaceAll('{origin}', vendor.origin)
    expect(await video.status(given.operation, SIGNAL)).toEqual(JSON.parse(text))
    expectSent(vendor.requests[0], {
      method: 'GET',
      headers: { authorization: `Bearer ${KEY}` },
      ...given.statusRequest,
    })
  })

  test('an unknown state changes nothing', async () => {
    const { video } = open(given, whole(given.unknownState))
    expect(await video.status(given.operation, SIGNAL)).toEqual({})
  })

  test.each<[string, Answer]>([
    ['text that is not JSON', whole('<html>', { headers: { 'content-type': 'text/html' } })],
    ['a list', whole([])],
    ['an object without a state', whole({})],
    ['404', whole({ message: 'not found' }, { status: 404 })],
    ['500', whole({ message: 'oops' }, { status: 500 })],
    ['429', whole({ message: 'slow down' }, { status: 429 })],
    ['a broken connection', reset()],
  ])('%s in place of a task state is an error without effect on the task', async (_, answer) => {
    const { video } = open(given, answer)
    expect((await errorOf(video.status(given.operation, SIGNAL))).detail.accepted).toBeUndefined()
  })

  test.each([
    ...given.refusals,
    refusal(500, { message: 'oops' }, 'bad_upstream_response'),
    // Runway documents that a 503 of its own means the order was not accepted.
    refusal(503, { message: 'later' }, 'server_is_overloaded', given.kind === 'runway' ? 'no' : undefined),
    {
      title: '503 of a proxy',
      answer: whole('<html>', { status: 503 }),
      code: 'server_is_overloaded',
      accepted: undefined,
    },
    refusal(409, { message: 'conflict' }, 'bad_upstream_response'),
    refusal(307, {}, 'bad_upstream_response'),
    refusal(502, { message: 'bad gateway' }, 'bad_upstream_response'),
    refusal(504, { message: 'gateway timeout' }, 'upstream_timeout'),
    { title: 'a response that is not JSON', answer: whole('ok'), code: 'bad_upstream_response', accepted: undefined },
    { title: 'a response without an id', answer: whole({}), code: 'bad_upstream_response', accepted: undefined },
  ] as Refusal[])(
    'an order with the response $title fails with $code, accepted: $accepted',
    async ({ answer, code, accepted, retry_after }) => {
      const { vendor, video } = open(given, answer)
      const error = await errorOf(video.start(callOf(given), SIGNAL))
      expect([error.code, error.detail.accepted, error.detail.retry_after]).toEqual([code, accepted, retry_after])
      expect(error.message).not.toContain(KEY)
      expect(error.message).not.toContain(String(vendor.port))
      expect(vendor.requests).toHaveLength(1)
    },
  )

  test('an order is sent once, and may have been accepted, when the connection breaks after the vendor read it', async () => {
    const { vendor, video } = open(given, reset(), accepted())
    const error = await errorOf(video.start(callOf(given), SIGNAL))
    expect(error.detail.accepted).toBeUndefined()
    expect(vendor.requests).toHaveLength(1)
  })

  test('an order was not accepted when nobody was reached', async () => {
    const { vendor, video } = open(given)
    await vendor.stop()
    expect((await errorOf(video.start(callOf(given), SIGNAL))).detail.accepted).toBe('no')
  })

  test.each(given.images)('media: $title', async ({ order, model, sent }) => {
    const { vendor, video } = open(given, accepted())
    await video.start(callOf(given, order, model), SIGNAL)
    expectSent(vendor.requests[0], sent)
  })

  test.each(given.unsupported)(
    'rejects the unsupported field $param before a request is sent',
    async ({ order, model, param }) => {
      const { vendor, video } = open(given)
      const error = await errorOf(video.start(callOf(given, order, model), SIGNAL))
      expect([error.status, error.detail.param, error.detail.accepted]).toEqual([400, param, 'no'])
      expect(vendor.requests).toHaveLength(0)
    },
  )

  test(given.cancelRequest ? 'cancels a task, unless the vendor refuses' : 'cannot cancel a task', async () => {
    const { vendor, video } = open(given, whole('', { status: 204 }), whole({ message: 'no' }, { status: 409 }))
    if (!given.cancelRequest) return void expect(video.cancel).toBeUndefined()
    await video.cancel?.(given.operation, SIGNAL)
    expectSent(vendor.requests[0], given.cancelRequest)
    await errorOf(video.cancel?.(given.operation, SIGNAL) ?? Promise.resolve())
  })

  test('a stored operation of another kind is an error, and no request is sent', async () => {
    const { vendor, video } = open(given)
    expect((await errorOf(video.status({}, SIGNAL))).code).toBe('internal_error')
    expect(vendor.requests).toHaveLength(0)
  })
})

describe('all video vendors', () => {
  test('report retry-after of a running task, but not of a finished one', async () => {
    const later = { headers: { 'retry-after': '9' } }
    const { video } = open(LUMA, whole(fixture('luma', 'running'), later), whole(fixture('luma', 'done'), later))
    expect(await video.status(LUMA.operation, SIGNAL)).toEqual({ status: 'IN_PROGRESS', retry_after_seconds: 9 })
    expect(await video.status(LUMA.operation, SIGNAL)).not.toHaveProperty('retry_after_seconds')
  })

  test('escape the id of the vendor in the path', async () => {
    const { vendor, video } = open(LUMA, whole(fixture('luma', 'running')))
    await video.status({ id: '../../admin?x=1' }, SIGNAL)
    expect(vendor.requests[0]?.path).toBe('/dream-machine/v1/generations/..%2F..%2Fadmin%3Fx%3D1')
  })

  test('redact keys and tokens in the reason of a failed task', async () => {
    const failed = { state: 'failed', failure_reason: `key ${KEY} at https://a.example/x?token=abc123 Bearer abcdefgh` }
    const { video } = open(LUMA, whole(failed))
    const text = JSON.stringify(await video.status(LUMA.operation, SIGNAL))
    for (const secret of [KEY, 'abc123', 'abcdefgh']) expect(text).not.toContain(secret)
  })

  test('send nothing when the signal is aborted, so that the order was not accepted', async () => {
    const { vendor, video } = open(LUMA)
    const error = await errorOf(video.start(callOf(LUMA), AbortSignal.abort()))
    expect(error.detail.accepted).toBe('no')
    expect(vendor.requests).toHaveLength(0)
  })

  test.each([
    ['runway', 'RUNWAYML_API_SECRET'],
    ['luma', 'LUMAAI_API_KEY'],
    ['ark', 'ARK_API_KEY'],
    ['kling', 'KLING_ACCESS_KEY'],
  ] as const)('%s requires a key, and the error names %s', (kind, name) => {
    expect(() => createProvider(partsOf({ kind }))).toThrow(name)
    expect(() => createProvider(partsOf({ kind }, { [name]: KEY, KLING_SECRET_KEY: 'secret' }))).not.toThrow()
  })

  test.each(['runway', 'luma', 'ark', 'kling'] as const)('%s has no safe resubmission', (kind) => {
    expect(createProvider(partsOf({ kind, key: KEY })).video?.resubmit).toBe('unsafe')
  })

  test.each<[string | undefined, string | undefined, string | undefined]>([
    ['720p', '16:9', '1280:720'],
    ['720p', '9:16', '720:1280'],
    ['720p', '1:1', '960:960'],
    ['720p', '3:4', '832:1104'],
    ['1080p', '16:9', '1920:1080'],
    ['1280x768', '16:9', '1280:768'],
    [undefined, '21:9', '1584:672'],
    [undefined, undefined, undefined],
  ])('runway encodes the size %s with the aspect ratio %s as %s', async (size, aspect_ratio, ratio) => {
    const { vendor, video } = open(RUNWAY, whole(fixture('runway', 'accepted')))
    const call = callOf(RUNWAY)
    const { size: _, aspect_ratio: __, ...rest } = call.request
    const request = { ...rest, ...(size && { size }), ...(aspect_ratio && { aspect_ratio }) }
    await video.start({ ...call, request }, SIGNAL)
    expect(vendor.requests[0]?.json().ratio).toBe(ratio)
  })

  test.each<[string, Partial<VideoOrder>, Record<string, unknown>]>([
    ['hailuo3', {}, { ratio: '16:9', resolution: '720p' }],
    ['h3_max', { size: '480p' }, { resolution: '480p' }],
    ['wan3', { image: PNG }, { ratio: 'auto_720p', audio: false }],
    ['happyhorse_1_0', { image: PNG }, { resolution: '720p' }],
    ['not-known-yet', { audio_enable: true, seed: 3 }, { ratio: '1280:720', seed: 3, audio: true }],
  ])('runway encodes size and sound as %s expects', async (model, order, expected) => {
    const { vendor, video } = open(RUNWAY, whole(fixture('runway', 'accepted')))
    await video.start(callOf(RUNWAY, order, model), SIGNAL)
    const { model: _, promptText: __, promptImage: ___, duration: ____, ...frame } = vendor.requests[0]?.json() ?? {}
    expect(frame).toEqual(expected)
  })

  test('runway sends audio for the models in options.audio_models', async () => {
    const given = { ...RUNWAY, config: { options: { audio_models: ['gen4.*'] } } }
    const { vendor, video } = open(given, whole(fixture('runway', 'accepted')))
    await video.start(callOf(given, { audio_enable: true }), SIGNAL)
    expect(vendor.requests[0]?.json().audio).toBe(true)
  })
})

test('ark reports how long it stores outputs', () => {
  expect(open(ARK).video.retention_seconds).toBe(86_400)
})

describe('kling with a key pair', () => {
  const pair: Case = { ...KLING, config: { options: { access_key: 'the-access-key', secret_key: 'the-secret-key' } } }
  const tokenOf = (vendor: Vendor, index: number) => vendor.requests[index]?.headers.authorization?.split(' ')[1] ?? ''
  const decoded = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())

  test('sends a JWT signed with the secret key, issued by the access key, valid for half an hour', async () => {
    const { vendor, video, clock } = open(pair, whole(fixture('kling', 'running')))
    await video.status(KLING.operation, SIGNAL)
    const [head, claims, signature] = tokenOf(vendor, 0).split('.')
    const now = clock.now() / 1000
    expect(decoded(head)).toEqual({ alg: 'HS256', typ: 'JWT' })
    expect(decoded(claims)).toEqual({ iss: 'the-access-key', exp: now + 1800, nbf: now - 5 })
    const key = await crypto.subtle.importKey(
      'raw',
      Buffer.from('the-secret-key'),
      { name: 'HMAC', hash: 'SHA-256' },
      false,
      ['verify'],
    )
    const text = Buffer.from(`${head}.${claims}`)
    expect(await crypto.subtle.verify('HMAC', key, Buffer.from(signature ?? '', 'base64url'), text)).toBe(true)
  })

  test('reuses the JWT until shortly before it expires, then creates a new one', async () => {
    const running = whole(fixture('kling', 'running'))
    const { vendor, video, clock } = open(pair, running, running, running)
    await video.status(KLING.operation, SIGNAL)
    clock.advance(1499_000)
    await video.status(KLING.operation, SIGNAL)
    clock.advance(1_000)
    await video.status(KLING.operation, SIGNAL)
    expect(tokenOf(vendor, 1)).toBe(tokenOf(vendor, 0))
    expect(tokenOf(vendor, 2)).not.toBe(tokenOf(vendor, 0))
  })

  test('redacts the key pair and the JWT in an error', async () => {
    const { vendor, video } = open(pair, async (wire) => {
      const token = wire.request.headers.authorization?.slice('Bearer '.length)
      await whole({ code: 1201, message: `no the-access-key ${token}` }, { status: 400 })(wire)
    })
    const error = await errorOf(video.start(callOf(pair), SIGNAL))
    expect(error.message).toBe('no [redacted] [redacted]')
    expect(error.message).not.toContain(tokenOf(vendor, 0))
  })

  test('polls a task with an image at the path of image2video', async () => {
    const { vendor, video } = open(KLING, whole(fixture('kling', 'running')))
    await video.status({ id: '83', way: 'image2video' }, SIGNAL)
    expect(vendor.requests[0]?.path).toBe('/v1/videos/image2video/83')
  })

  test.each([
    ['a known order', whole(fixture('kling', 'running')), '831234567890123456'],
    [
      'an order with another external_task_id',
      whole({ code: 0, data: { task_id: '9', task_info: { external_task_id: 'x' } } }),
      undefined,
    ],
    ['an unknown order, by its code', whole({ code: 1203, message: 'no such task' }, { status: 404 }), undefined],
    ['an unknown order, with status 200', whole({ code: 1203, message: 'no such task' }), undefined],
  ])('looks up an order in doubt by external_task_id: %s', async (_, answer, found) => {
    const { vendor, video } = open(KLING, answer)
    const orders = await video.orderList?.since(callOf(KLING), 0, SIGNAL)
    const own = orders?.find(({ label }) => label === TASK_ID)
    expect(own?.operation).toEqual(found === undefined ? undefined : { id: found, way: 'text2video' })
    expect(vendor.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `GET /v1/videos/text2video/${TASK_ID}`,
    ])
  })

  test.each([
    ['a failure', whole({ code: 5000, message: 'oops' }, { status: 500 })],
    ['too many requests', whole({ code: 1302, message: 'slow down' }, { status: 429 })],
    ['a web page', whole('<html>')],
    ['no task', whole({ code: 0, data: {} })],
  ])('a look-up with the response %s is an error without effect on the order', async (_, answer) => {
    const { video } = open(KLING, answer)
    expect((await errorOf(video.orderList?.since(callOf(KLING), 0, SIGNAL) ?? Promise.resolve())).code).toBe(
      'bad_upstream_response',
    )
  })

  test('metadata cannot set sound or a callback', async () => {
    const { vendor, video } = open(KLING, whole(fixture('kling', 'accepted')))
    await video.start(
      callOf(KLING, { metadata: { kling: { sound: 'on', callback_url: 'https://x.example' } } }),
      SIGNAL,
    )
    const names = Object.keys(vendor.requests[0]?.json() ?? {})
    expect(names.filter((name) => ['sound', 'callback_url'].includes(name))).toEqual([])
    expect(names).toContain('external_task_id')
  })
})

describe('a chat-compatible video API', () => {
  const accepted = () => whole(fixture('chatcompat-video', 'accepted'))
  const withOptions = (options: Record<string, unknown>): Case => ({ ...VIDEOS, config: { options } })

  test.each([
    [undefined, 'unsafe'],
    [false, 'unsafe'],
    ['yes', 'unsafe'],
    [true, 'safe'],
  ] as const)('with idempotent %p resubmission is %s', (idempotent, resubmit) => {
    expect(open(withOptions({ idempotent })).video.resubmit).toBe(resubmit)
  })

  test.each([
    [1_763_700_000, { expires_at: 1_763_700_000 }],
    [null, {}],
    [0, {}],
    ['tomorrow', {}],
  ])('expires_at %p is reported as %p', async (expires_at, expected) => {
    const answer = whole({ ...(fixture('chatcompat-video', 'done') as object), expires_at })
    const progress = await open(VIDEOS, answer).video.status({ id: 'video_1' }, SIGNAL)
    const { outputs: _, status, ...rest } = progress as Extract<typeof progress, { status: 'SUCCESS' }>
    expect([status, rest]).toEqual(['SUCCESS', expected])
  })

  test.each([
    [undefined, 86_400],
    [0.5, 1_800],
    [48, 172_800],
  ])('with key_hours %p idempotency keys are used for %d s', (key_hours, seconds) => {
    const options = { idempotent: true, ...(key_hours !== undefined && { key_hours }) }
    expect(open(withOptions(options)).video.key_seconds).toBe(seconds)
  })

  test.each([0, -1, '24', null])('key_hours %p is rejected by name', (key_hours) => {
    expect(() => open(withOptions({ key_hours }))).toThrow('options.key_hours must be a number of hours above 0')
  })

  test('a repeated order has the same bytes and the same idempotency key', async () => {
    const { vendor, video } = open(withOptions({ idempotent: true, body: 'multipart' }), accepted(), accepted())
    await video.start(callOf(VIDEOS, { image: PNG }), SIGNAL)
    await video.start(callOf(VIDEOS, { image: PNG }), SIGNAL)
    const [first, second] = vendor.requests
    expect(second?.body).toBe(first?.body as string)
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'] as string)
  })

  test('body: multipart sends a form with the image as a file', async () => {
    const { vendor, video } = open(withOptions({ body: 'multipart' }), accepted())
    const bytes = Buffer.from('bytes of an image')
    await video.start(callOf(VIDEOS, { image: `data:image/jpeg;base64,${bytes.toString('base64')}` }), SIGNAL)
    const { headers, body } = await vendor.request()
    const form = await new Response(body, { headers: { 'content-type': headers['content-type'] ?? '' } }).formData()
    const { input_reference: file, ...fields } = Object.fromEntries(form)
    expect(fields).toEqual({ model: 'wan-video', prompt: 'A red kite', seconds: '4', size: '1280x720' })
    if (!(file instanceof File)) throw new Error('no file')
    expect([file.name, file.type, await file.text()]).toEqual(['image.jpeg', 'image/jpeg', 'bytes of an image'])
  })

  test('body: multipart rejects an image by URL that cannot be read', async () => {
    const { vendor, video } = open(withOptions({ body: 'multipart' }))
    const error = await errorOf(video.start(callOf(VIDEOS, { image: 'https://files.example/a.png' }), SIGNAL))
    expect([error.code, error.detail.param, error.detail.accepted]).toEqual(['unsupported_value', 'image', 'no'])
    expect(vendor.requests).toHaveLength(0)
  })

  test('an order was not accepted when its image could not be downloaded', async () => {
    const read = () => Promise.reject(new GatewayError('upstream_timeout', 'too slow'))
    const { vendor, video } = open(withOptions({ body: 'multipart' }), { media: { read, check: async () => {} } })
    const error = await errorOf(video.start(callOf(VIDEOS, { image: 'https://files.example/a.png' }), SIGNAL))
    expect([error.code, error.detail.accepted]).toEqual(['upstream_timeout', 'no'])
    expect(vendor.requests).toHaveLength(0)
  })

  test('image_as: image sends the image unchanged; fields can be dropped and renamed', async () => {
    const fields = { drop: ['metadata'], rename: { seconds: 'duration' } }
    const given: Case = { ...VIDEOS, config: { options: { image_as: 'image' }, fields } }
    const { vendor, video } = open(given, accepted())
    await video.start(callOf(given, { image: PNG, metadata: { wan: { shift: 2 } } }), SIGNAL)
    expect(vendor.requests[0]?.json()).toEqual({
      model: 'wan-video',
      prompt: 'A red kite',
      duration: '4',
      size: '1280x720',
      image: PNG,
    })
  })

  test.each(['new-api-accepted', 'gatehouse-accepted'])('reads the id from %s', async (name) => {
    const { video } = open(VIDEOS, whole(fixture('chatcompat-video', name)))
    expect(await video.start(callOf(VIDEOS), SIGNAL)).toEqual({ operation: { id: FAR_ID } })
  })

  test.each(['NOT_START', 'SUBMITTED', 'QUEUED', 'queued', 'pending'])(
    '%s is a queued task in both APIs',
    async (status) => {
      const { video } = open(VIDEOS, whole({ id: 'x', status }), whole({ code: 'success', data: { status } }))
      expect(await video.status(VIDEOS.operation, SIGNAL)).toEqual({ status: 'QUEUED' })
      expect(await video.status(VIDEOS.operation, SIGNAL)).toEqual({ status: 'QUEUED' })
    },
  )

  test('sends the key to a file at the upstream itself', () => {
    const { vendor, video } = open(VIDEOS)
    expect(video.outputHeaders?.(`${vendor.url}/videos/x/content`)).toEqual({ authorization: `Bearer ${KEY}` })
  })

  test.each(['https://files.example/x.mp4', 'http://127.0.0.1.files.example:{port}/v1/videos/x', 'x'])(
    'does not send the key to the file %s',
    (url) => {
      const { vendor, video } = open(VIDEOS)
      expect(video.outputHeaders?.(url.replace('{port}', String(vendor.port)))).toEqual({})
    },
  )

  test.each([
    ['api', 'sora'],
    ['body', 'xml'],
    ['image_as', 'url'],
    ['cancel', 'maybe'],
  ])('options.%s rejects %s and lists the accepted values', (name, value) => {
    const config = { kind: 'chatcompat-video', base_url: 'https://far.example/v1', options: { [name]: value } } as const
    expect(() => createProvider(partsOf(config))).toThrow(`providers.acme.options.${name} must be one of`)
  })

  test('cannot cancel a task without options.cancel', () => {
    expect(open(withOptions({})).video.cancel).toBeUndefined()
  })
})
