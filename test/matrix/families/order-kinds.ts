/** The kinds of video and 3D providers, a row each. */
import type { FamilyKind } from './family.ts'
import { type OrderShape, orderKind } from './order-wire.ts'
import { openaiFailure } from './vendor.ts'

/** Durations that the provider supports, so that the gateway refuses any other. */
const films = (seconds: number): NonNullable<FamilyKind['more']> => ({
  families: ['video-generation', 'chatcompat-video'],
  video: { duration: { values: [seconds], default: seconds } },
})

const detail: OrderShape['failure'] = (_, message) => ({ detail: message })

export const VIDEO_KINDS: FamilyKind[] = [
  orderKind(
    {
      directory: 'chatcompat-video',
      id: 'video_68d7512d07848190',
      orders: '/v1/videos',
      params: '/v1/videos/ID',
      content: '/v1/videos/ID/content',
      failed: 'failed-policy',
      failure: openaiFailure,
    },
    { name: 'chatcompat-video', path: '/v1', provider: { kind: 'chatcompat-video' }, model: 'wan', more: films(4) },
  ),
  orderKind(
    {
      directory: 'runway',
      id: '17f20503-6c24-4c16-946b-35dbbce2af2f',
      orders: '/v1/text_to_video',
      params: '/v1/tasks/ID',
      failed: 'failed-policy',
      failure: (_, error) => ({ error }),
    },
    { name: 'runway', path: '/v1', provider: { kind: 'runway' }, model: 'gen4.5', more: films(4) },
  ),
  orderKind(
    {
      directory: 'luma',
      id: '7a1c6f1e-2b3d-4c5e-8f90-123456789abc',
      orders: '/dream-machine/v1/generations/video',
      params: '/dream-machine/v1/generations/ID',
      failed: 'failed-policy',
      failure: detail,
    },
    { name: 'luma', path: '/dream-machine/v1', provider: { kind: 'luma' }, model: 'ray-2', more: films(5) },
  ),
  orderKind(
    {
      directory: 'kling',
      id: '831234567890123456',
      orders: '/v1/videos/text2video',
      params: '/v1/videos/text2video/ID',
      failed: 'failed-policy',
      failure: (status, message) => ({ code: status === 400 ? 1201 : 5001, message }),
    },
    { name: 'kling', path: '/v1', provider: { kind: 'kling' }, model: 'kling-v2-6', more: films(5) },
  ),
  orderKind(
    {
      directory: 'ark',
      id: 'cgt-20261120194932-6bbjd',
      orders: '/api/v3/contents/generations/tasks',
      params: '/api/v3/contents/generations/tasks/ID',
      failed: 'failed-policy',
      failure: (_, message) => ({ error: { code: 'InvalidParameter', message } }),
    },
    { name: 'ark', path: '/api/v3', provider: { kind: 'ark' }, model: 'seedance-1-5-pro-251215', more: films(4) },
  ),
]

const MAKER = 'fal-ai/hunyuan3d-v3/text-to-3d'
const RESULTS = '/fal-ai/hunyuan3d-v3/requests/ID'

export const THREE_D_KINDS: FamilyKind[] = [
  orderKind(
    {
      directory: 'meshy',
      id: '018a210d-8ba4-705c-b111-1f1776f7f578',
      orders: '/openapi/v2/text-to-3d',
      params: '/openapi/v2/text-to-3d/ID',
      failed: 'failed-policy',
      failure: (_, message) => ({ message }),
    },
    { name: 'meshy', path: '/openapi', provider: { kind: 'meshy' }, model: 'meshy-6' },
  ),
  orderKind(
    {
      directory: 'tripo',
      id: 'ef731ad6-aeb0-4950-9a2e-2298359dfaf8',
      orders: '/v2/openapi/task',
      params: '/v2/openapi/task/ID',
      done: 'success',
      failed: 'banned',
      failure: (_, message) => ({ code: 1004, message }),
    },
    { name: 'tripo', path: '/v2/openapi', provider: { kind: 'tripo' }, model: 'v2.5-20250123' },
  ),
  orderKind(
    {
      directory: 'fal',
      id: '80e732af-660e-45cd-bd63-580e4f2a94cc',
      orders: `/${MAKER}`,
      params: `${RESULTS}/status`,
      accepted: '3d-accepted',
      done: '3d-completed',
      failed: '3d-completed',
      result: { params: RESULTS, done: '3d-hunyuan', failed: 'failed-policy' },
      auth: { header: 'authorization', prefix: 'Key ' },
      failure: detail,
    },
    { name: 'fal', path: '', provider: { kind: 'fal' }, model: MAKER },
  ),
]
