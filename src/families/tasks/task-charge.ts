/** Computes the usage of a task, its charge and its cost. */
import type { Catalogue, CatalogueModel } from '../../models/catalogue.ts'
import { chargeOf } from '../../models/prices.ts'
import type { Task } from '../../spec/task.ts'
import type { Estimate, Units } from '../../spec/usage.ts'
import type { TaskCharge } from './task-entry.ts'

/** Of its request, with the defaults of the model: `outputs` of what it asks for. A 3D model may have several files. */
function unitsOfTask({ family, request }: Pick<Task, 'family' | 'request'>, outputs: number): Units {
  const units: Units = { input_tokens: 0, output_tokens: 0, requests: 1 }
  const { size, quality, duration, audio_enable } = request
  if (family === '3d-generation') return { ...units, three_d: outputs > 0 ? 1 : 0 }
  if (family === 'image-generation') {
    units.images = outputs
    if (typeof size === 'string') units.image_size = size
    if (typeof quality === 'string') units.image_quality = quality
    return units
  }
  units.videos = outputs
  if (typeof duration === 'number') units.video_seconds = outputs * duration
  if (typeof size === 'string') units.video_size = size
  if (typeof audio_enable === 'boolean') units.has_sound = audio_enable
  return units
}

/** What a task uses if it succeeds, as far as its request says. */
export const expectedUnits = (task: Pick<Task, 'family' | 'request'>): Units =>
  unitsOfTask(task, typeof task.request.n === 'number' ? task.request.n : 1)

/** The longest video that a model is taken to make if it does not say so. */
const LONGEST_SECONDS = 60

/** Of a task that is submitted: what it uses if it succeeds. */
export function estimateTask(
  task: Pick<Task, 'family' | 'request'>,
  { video }: Pick<CatalogueModel, 'video'>,
): Estimate {
  const expected = expectedUnits(task)
  const { videos = 0, video_seconds } = expected
  if (videos === 0 || video_seconds !== undefined) return { expected, most: expected }
  const { values, maximum = LONGEST_SECONDS } = video.duration ?? {}
  const longest = values ? Math.max(...values) : maximum
  return { expected, most: { ...expected, video_seconds: videos * longest } }
}

type ChargeParts = {
  catalogue: Pick<Catalogue, 'serving'>
  /** How many files it has. */
  outputs: number
}

/** By the prices of the time at which it was submitted, as a budget has held it. Unknown where the model is no longer configured. */
export function chargeOfTask(task: Task, { catalogue, outputs }: ChargeParts): TaskCharge {
  const units = unitsOfTask(task, outputs)
  const model = catalogue.serving(task.model, task.family)
  if (!model) return { units, amount: null, cost: null, price: null }
  const target = model.targets.find(
    ({ provider, model: name }) => provider.id === task.provider && name === task.upstream_model,
  )
  return { units, ...chargeOf({ model, target, units, at: task.submit_time }) }
}
