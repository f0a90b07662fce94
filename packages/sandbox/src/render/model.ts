/** Renders one 3D model and the files that belong to it, in the calling process. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { loadCanvas } from './canvas.ts'
import { type Model, type ModelPictures, writeGlb, writeObj, writeStl } from './model-files.ts'
import { filesOfModel, MODEL_STEPS, type ModelFile, type ModelPlan } from './model-plan.ts'
import { meshOf } from './model-shape.ts'
import { drawRelief, drawTexture } from './model-texture.ts'
import { drawView } from './model-view.ts'

type ModelJob = {
  plan: ModelPlan
  /** The path of the first file; the other files go into the same directory. */
  path: string
  /** Called with the number of finished steps. */
  onFrame: (steps: number) => void
}

export async function renderModel({ plan, path, onFrame }: ModelJob): Promise<void> {
  let steps = 0
  const reportStep = async () => {
    steps++
    if (steps <= MODEL_STEPS) onFrame(steps)
    await setImmediate()
  }
  const tools = await loadCanvas()
  const mesh = meshOf(plan.seed, plan.polygons)
  await reportStep()
  const texture = plan.texture ? drawTexture(tools, plan) : undefined
  const relief = plan.texture && plan.pbr ? drawRelief(tools, plan) : undefined
  const pictures: ModelPictures = {
    ...(texture && { texture: texture.encodeSync('png') }),
    ...(relief && { surface: relief.surface.encodeSync('png'), normal: relief.normal.encodeSync('png') }),
  }
  await reportStep()
  await writeModel({ mesh, text: plan.text, pictures }, plan, dirname(path))
  await reportStep()
  const view = drawView(tools, mesh, { texture, quick: plan.quick }).encodeSync('png')
  await writeFile(join(dirname(path), filesOfModel(plan).preview.name), view)
  await reportStep()
}

async function writeModel(model: Model, plan: ModelPlan, directory: string): Promise<void> {
  const files = filesOfModel(plan)
  const writeIfPresent = async (file: ModelFile | undefined, bytes: Uint8Array | string | undefined) => {
    if (file && bytes !== undefined) await writeFile(join(directory, file.name), bytes)
  }
  if (plan.format === 'glb') return writeIfPresent(files.main, await writeGlb(model))
  if (plan.format === 'stl') return writeIfPresent(files.main, writeStl(model))
  const { obj, mtl } = writeObj(model, files)
  await writeIfPresent(files.main, obj)
  await writeIfPresent(files.material, mtl)
  await writeIfPresent(files.texture, model.pictures.texture)
  await writeIfPresent(files.surface, model.pictures.surface)
  await writeIfPresent(files.normal, model.pictures.normal)
}
