/** Videos of the sandbox. */
import Type from 'typebox'
import { checker } from '../../../src/kit/checker.ts'
import type { Clock } from '../../../src/kit/clock.ts'
import { sha256 } from '../../../src/kit/secret.ts'
import type { SimulatedErrors, VideoCall, VideoProvider } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { createJobs } from './jobs.ts'
import { isQuick, OrderBehavior, type ParsedOrder, parseOrderPrompt } from './order-directives.ts'
import { createSandboxOrders } from './orders.ts'
import { ASPECT_RATIOS, DURATIONS, planRender, SIZES } from './render/plan.ts'
import { createRenderWorkers, type RenderWorkers } from './render/workers.ts'
import { createTemporaryFiles, type TemporaryFiles } from './temporary-files.ts'

export type SandboxVideoParts = {
  clock: Clock
  errors: SimulatedErrors
  /** Default: half as many processes as the machine has cores, and a new directory among its temporary files. */
  renderWorkers?: RenderWorkers
  files?: TemporaryFiles
  max_waiting?: number
}

export type SandboxVideo = { video: VideoProvider; close: () => Promise<void> }

/** The stored operation of an order: all that another process needs to render the same video again. */
const VideoOperation = Type.Object({
  id: Type.String(),
  /** The part of the prompt that the video shows. */
  text: Type.String(),
  seed: Type.String(),
  aspect_ratio: Type.Enum([...ASPECT_RATIOS]),
  size: Type.Enum([...SIZES]),
  duration: Type.Enum([...DURATIONS]),
  audio: Type.Boolean(),
  /** Unix milliseconds; `queue_ms` and `render_ms` count from here. */
  ordered_ms: Type.Integer(),
  course: OrderBehavior,
  owner: Type.Optional(Type.String()),
})
type VideoOperation = Type.Static<typeof VideoOperation>
const checkOperation = checker(VideoOperation)

/** The longest text that is legible in a frame. */
const MAX_TEXT = 1500
const NAME = 'video.mp4'

export function createSandboxVideo(parts: SandboxVideoParts): SandboxVideo {
  const { clock, errors, renderWorkers = createRenderWorkers({}), files = createTemporaryFiles(), max_waiting } = parts
  const workOf = (operation: VideoOperation) => {
    const plan = planRender({ ...operation, quick: isQuick(operation) })
    return { plan, steps: plan.frames, name: NAME }
  }
  const jobs = createJobs({ clock, files, renderWorkers, max_waiting, workOf })
  const video = createSandboxOrders({
    clock,
    errors,
    thing: 'video',
    jobs,
    parseOrder: (call: VideoCall) => parseOrder(call, clock),
    parseOperation,
    filesOf: () => [{ name: NAME, content_type: 'video/mp4' }],
  })
  return { video, close: () => jobs.close() }
}

/** Throws `upstream_invalid_request` with the field at fault. */
function parseOrder({ request, model, idempotency_key, owner }: VideoCall, clock: Clock): ParsedOrder<VideoOperation> {
  const { text, directives } = parseOrderPrompt(request.prompt)
  const { status, lose, ...course } = directives
  const { aspect_ratio, size, duration, audio_enable, seed } = request
  for (const field of ['image', 'last_image', 'images', 'video', 'negative_prompt'] as const) {
    if (request[field] !== undefined) reject(field, `the sandbox does not support "${field}"`)
  }
  if (request.n > 1) reject('n', 'the sandbox makes one video at a time: n must be 1')
  const operation: VideoOperation = {
    id: `vid_${sha256(idempotency_key).slice(0, 32)}`,
    text: text.slice(0, MAX_TEXT),
    seed: sha256(JSON.stringify([model, text, seed ?? null])),
    aspect_ratio: oneOf(ASPECT_RATIOS, aspect_ratio ?? '16:9', 'aspect_ratio'),
    size: oneOf(SIZES, size ?? '720p', 'size'),
    duration: oneOf(DURATIONS, duration ?? 4, 'duration'),
    audio: audio_enable ?? false,
    ordered_ms: clock.now(),
    course,
    ...(owner === undefined ? {} : { owner }),
  }
  return { operation, status, retry_after: course.retry_after, lose: lose !== undefined }
}

/** Throws `bad_upstream_response` for an operation that the sandbox did not create. */
function parseOperation(value: unknown): VideoOperation {
  if (checkOperation.Check(value)) return value
  throw new GatewayError('bad_upstream_response', 'The sandbox does not know this operation.')
}

function oneOf<T extends string | number>(allowed: readonly T[], requested: string | number, param: string): T {
  const found = allowed.find((value) => value === requested)
  return found ?? reject(param, `${param} must be ${allowed.join(' or ')}`)
}

export function reject(param: string, why: string): never {
  throw new GatewayError('upstream_invalid_request', `The simulated provider rejected the order: ${why}.`, {
    param,
    upstream_status: 400,
  })
}
