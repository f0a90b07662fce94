/** Makes one 3D model, and the files that belong to it, in the process that it is called in. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { loadCanvas } from './canvas.ts'
import { type Model, type ModelPictures, writeGlb, writeObj, writeStl } from './model-files.ts'
import { filesOfModel, MODEL_PIECES, type ModelFile, type ModelPlan } from './model-plan.ts'
import { meshOf } from './model-shape.ts'
import { drawRelief, drawTexture } from './model-texture.ts'
import { drawView } from './model-view.ts'

type ModelJob = {
  plan: ModelPlan
  /** Of the first file; the others are put beside it. */
  path: string
  /** Told how many pieces are done. */
  onFrame: (pieces: number) => void
}

export async function renderModel({ plan, path, onFrame }: ModelJob): Promise<void> {
  let pieces = 0
  const reportPiece = async () => {
    pieces++
    if (pieces <= MODEL_PIECES) onFrame(pieces)
    await setImmediate()
  }
  const tools = await loadCanvas()
  const mesh = meshOf(plan.seed, plan.polygons)
  await reportPiece()
  const texture = plan.texture ? drawTexture(tools, plan) : undefined
  const relief = plan.texture && plan.pbr ? drawRelief(tools, plan) : undefined
  const pictures: ModelPictures = {
    ...(texture && { texture: await texture.encode('png') }),
    ...(relief && { surface: await relief.surface.encode('png'), normal: await relief.normal.encode('png') }),
  }
  await reportPiece()
  await writeModel({ mesh, text: plan.text, pictures }, plan, dirname(path))
  await reportPiece()
  const view = await drawView(tools, mesh, { texture, quick: plan.quick }).encode('png')
  await writeFile(join(dirname(path), filesOfModel(plan).preview.name), view)
  await reportPiece()
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
