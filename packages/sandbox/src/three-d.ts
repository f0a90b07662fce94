/** 3D models of the sandbox. */
import Type from 'typebox'
import { checker } from '../../../src/kit/checker.ts'
import type { Clock } from '../../../src/kit/clock.ts'
import { sha256 } from '../../../src/kit/secret.ts'
import type { SimulatedErrors, ThreeDCall, ThreeDProvider } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { createJobs } from './jobs.ts'
import { isQuick, OrderBehavior, type ParsedOrder, parseOrderPrompt } from './order-directives.ts'
import { createSandboxOrders } from './orders.ts'
import { filesOfModel, MODEL_FORMATS, MODEL_STEPS, type ModelPlan, POLYGONS } from './render/model-plan.ts'
import type { RenderWorkers } from './render/workers.ts'
import { createTemporaryFiles, type TemporaryFiles } from './temporary-files.ts'
import { reject } from './video.ts'

type SandboxThreeDParts = {
  clock: Clock
  errors: SimulatedErrors
  renderWorkers: RenderWorkers
  files?: TemporaryFiles
  max_waiting?: number
}

const Operation = Type.Object({
  id: Type.String(),
  /** The base name of its files. */
  name: Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$' }),
  text: Type.String(),
  seed: Type.String(),
  format: Type.Enum([...MODEL_FORMATS]),
  texture: Type.Boolean(),
  pbr: Type.Boolean(),
  polygons: Type.Integer({ minimum: POLYGONS.minimum, maximum: POLYGONS.maximum }),
  ordered_ms: Type.Integer(),
  course: OrderBehavior,
  owner: Type.Optional(Type.String()),
})
type Operation = Type.Static<typeof Operation>

/** The longest text that is legible on a model. */
const MAX_TEXT = 600
/** A quick order gets the smallest model. */
const QUICK_POLYGONS = POLYGONS.minimum

export function createSandboxThreeD(parts: SandboxThreeDParts): { threeD: ThreeDProvider; close: () => Promise<void> } {
  const { clock, errors, renderWorkers, files = createTemporaryFiles(), max_waiting } = parts
  const checkOperation = checker(Operation)
  const jobs = createJobs<Operation>({
    clock,
    files,
    renderWorkers,
    max_waiting,
    workOf(operation) {
      const plan = planOf(operation)
      return { plan, steps: MODEL_STEPS, name: filesOfModel(plan).main.name }
    },
  })
  const threeD = createSandboxOrders({
    clock,
    errors,
    thing: '3D model',
    jobs,
    parseOrder: (call: ThreeDCall) => parseOrder(call, clock),
    parseOperation(value) {
      if (checkOperation.Check(value)) return value
      throw new GatewayError('bad_upstream_response', 'The sandbox does not know this operation.')
    },
    filesOf: (operation) => filesOfModel(planOf(operation)).all,
  })
  return { threeD, close: () => jobs.close() }
}

function planOf(operation: Operation): ModelPlan {
  const { seed, text, format, texture, pbr, polygons, name } = operation
  const quick = isQuick(operation)
  return {
    seed,
    text,
    format,
    texture,
    pbr,
    polygons: quick ? Math.min(polygons, QUICK_POLYGONS) : polygons,
    name,
    quick,
  }
}

function parseOrder(
  { request, model, task_id, idempotency_key, owner }: ThreeDCall,
  clock: Clock,
): ParsedOrder<Operation> {
  const { prompt = '', format, texture = true, pbr = false, target_polycount = POLYGONS.default, seed } = request
  for (const field of ['image', 'images', 'negative_prompt'] as const) {
    if (request[field] !== undefined) reject(field, `the sandbox does not support "${field}"`)
  }
  const { text, directives } = parseOrderPrompt(prompt)
  const { status, lose, ...course } = directives
  const known =
    MODEL_FORMATS.find((one) => one === format) ??
    reject('format', `the sandbox supports the formats ${MODEL_FORMATS.join(', ')}`)
  if (target_polycount < POLYGONS.minimum || target_polycount > POLYGONS.maximum) {
    reject('target_polycount', `target_polycount must be ${POLYGONS.minimum} to ${POLYGONS.maximum}`)
  }
  const has_texture = texture && known !== 'stl'
  const operation: Operation = {
    id: `3d_${sha256(idempotency_key).slice(0, 32)}`,
    name: /^[A-Za-z0-9_]{1,64}$/.test(task_id) ? task_id : 'model',
    text: text.slice(0, MAX_TEXT),
    seed: sha256(JSON.stringify([model, text, seed ?? null])),
    format: known,
    texture: has_texture,
    pbr: has_texture && pbr,
    polygons: target_polycount,
    ordered_ms: clock.now(),
    course,
    ...(owner === undefined ? {} : { owner }),
  }
  return { operation, status, retry_after: course.retry_after, lose: lose !== undefined }
}
