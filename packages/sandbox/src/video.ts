/** Videos of the sandbox. */
import Type from 'typebox'
import { checker } from '../../../src/kit/checker.ts'
import type { Clock } from '../../../src/kit/clock.ts'
import { sha256 } from '../../../src/kit/secret.ts'
import type { SimulatedErrors, VideoCall, VideoProvider } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { createJobs } from './jobs.ts'
import { Course, isQuick, type ReadOrder, readVideoPrompt } from './order-directives.ts'
import { createSandboxOrders } from './orders.ts'
import { ASPECT_RATIOS, DURATIONS, planRender, SIZES } from './render/plan.ts'
import { createRenderWorkers, type RenderWorkers } from './render/workers.ts'
import { createMadeFiles, type GeneratedFiles } from './temporary-files.ts'

export type SandboxVideoParts = {
  clock: Clock
  errors: SimulatedErrors
  /** Default: as many processes as half of the cores, and a directory of the machine's temporary ones. */
  renderWorkers?: RenderWorkers
  files?: GeneratedFiles
  most_waiting?: number
}

export type SandboxVideo = { video: VideoProvider; close: () => Promise<void> }

/** All that a later process needs to render the very same video. */
const VideoOperation = Type.Object({
  id: Type.String(),
  /** What is shown of the prompt. */
  text: Type.String(),
  seed: Type.String(),
  aspect_ratio: Type.Enum([...ASPECT_RATIOS]),
  size: Type.Enum([...SIZES]),
  duration: Type.Enum([...DURATIONS]),
  audio: Type.Boolean(),
  /** Unix milliseconds, from which `queue_ms` and `render_ms` count. */
  ordered_ms: Type.Integer(),
  course: Course,
})
type VideoOperation = Type.Static<typeof VideoOperation>
const checkOperation = checker(VideoOperation)

/** More than this could not be read in a frame. */
const MAX_TEXT = 1500
const NAME = 'video.mp4'

export function createSandboxVideo(parts: SandboxVideoParts): SandboxVideo {
  const { clock, errors, renderWorkers = createRenderWorkers({}), files = createMadeFiles(), most_waiting } = parts
  const workOf = (operation: VideoOperation) => {
    const plan = planRender({ ...operation, quick: isQuick(operation) })
    return { plan, pieces: plan.frames, name: NAME }
  }
  const jobs = createJobs({ clock, files, renderWorkers, most_waiting, workOf })
  const video = createSandboxOrders({
    clock,
    errors,
    thing: 'video',
    jobs,
    readOrder: (call: VideoCall) => readOrder(call, clock),
    readOperation,
    filesOf: () => [{ name: NAME, content_type: 'video/mp4' }],
  })
  return { video, close: () => jobs.close() }
}

/** Throws `upstream_invalid_request` with the field at fault. */
function readOrder({ request, model, idempotency_key }: VideoCall, clock: Clock): ReadOrder<VideoOperation> {
  const { text, directives } = readVideoPrompt(request.prompt)
  const { status, lose, ...course } = directives
  const { aspect_ratio, size, duration, audio_enable, seed } = request
  for (const field of ['image', 'last_image', 'images', 'video', 'negative_prompt'] as const) {
    if (request[field] !== undefined) refuse(field, `"${field}" is not something that the sandbox can draw from`)
  }
  if (request.n > 1) refuse('n', 'the sandbox makes one video at a time: n must be 1')
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
  }
  return { operation, status, retry_after: course.retry_after, lose: lose !== undefined }
}

/** Throws `bad_upstream_response` for what the sandbox did not write. */
function readOperation(value: unknown): VideoOperation {
  if (checkOperation.Check(value)) return value
  throw new GatewayError('bad_upstream_response', 'The sandbox does not know such an operation.')
}

function oneOf<T extends string | number>(allowed: readonly T[], given: string | number, param: string): T {
  const found = allowed.find((value) => value === given)
  return found ?? refuse(param, `${param} must be ${allowed.join(' or ')}`)
}

function refuse(param: string, why: string): never {
  throw new GatewayError('upstream_invalid_request', `The simulated vendor refused the order: ${why}.`, {
    param,
    upstream_status: 400,
  })
}
