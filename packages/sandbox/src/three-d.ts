/** 3D models of the sandbox. */
import Type from 'typebox'
import type { ThreeDProvider } from '../../../src/providers/provider.ts'
import type { ThreeDOrder } from '../../../src/spec/three-d-request.ts'
import { isQuick, STORED_ORDER } from './order-directives.ts'
import { createSandboxOrders, reject, type SandboxOrdersParts } from './orders.ts'
import { filesOfModel, MODEL_FORMATS, MODEL_STEPS, type ModelPlan, POLYGONS } from './render/model-plan.ts'

const Operation = Type.Object({
  ...STORED_ORDER,
  /** The base name of its files. */
  name: Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$' }),
  format: Type.Enum([...MODEL_FORMATS]),
  texture: Type.Boolean(),
  pbr: Type.Boolean(),
  polygons: Type.Integer({ minimum: POLYGONS.minimum, maximum: POLYGONS.maximum }),
})
type Operation = Type.Static<typeof Operation>

export const createSandboxThreeD = (parts: SandboxOrdersParts): ThreeDProvider & { close(): Promise<void> } =>
  createSandboxOrders<ThreeDOrder, Operation>(parts, {
    thing: '3D model',
    prefix: '3d',
    schema: Operation,
    max_text: 600,
    unsupported: ['image', 'images', 'negative_prompt'],
    parse({ request, task_id }) {
      const { format, texture = true, pbr = false, target_polycount = POLYGONS.default } = request
      const known =
        MODEL_FORMATS.find((one) => one === format) ??
        reject('format', `the sandbox supports the formats ${MODEL_FORMATS.join(', ')}`)
      if (target_polycount < POLYGONS.minimum || target_polycount > POLYGONS.maximum) {
        reject('target_polycount', `target_polycount must be ${POLYGONS.minimum} to ${POLYGONS.maximum}`)
      }
      const has_texture = texture && known !== 'stl'
      return {
        name: /^[A-Za-z0-9_]{1,64}$/.test(task_id) ? task_id : 'model',
        format: known,
        texture: has_texture,
        pbr: has_texture && pbr,
        polygons: target_polycount,
      }
    },
    workOf(operation) {
      const plan = planOf(operation)
      return { plan, steps: MODEL_STEPS, name: filesOfModel(plan).main.name }
    },
    filesOf: (operation) => filesOfModel(planOf(operation)).all,
  })

function planOf(operation: Operation): ModelPlan {
  const { seed, text, format, texture, pbr, polygons, name } = operation
  const quick = isQuick(operation)
  // A quick order gets the smallest model.
  return { seed, text, format, texture, pbr, polygons: quick ? POLYGONS.minimum : polygons, name, quick }
}
