/** Puts the deployments of one model together: its targets, and what holds for all of them. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { type Draft, firstOf } from './imported.ts'

export type Deployment = {
  provider: string
  /** The name at the provider. */
  model: string
  weight?: number
  /** The lower, the earlier. */
  priority?: number
  when?: Tree
  timeouts?: Tree
  /** What its provider charges, where that is not what the model costs. */
  prices?: Tree
}

const MODEL_ID = /^(?!__proto__$)[^\s/*\p{Cc}]+(\/[^\s/*\p{Cc}]+)*$/u
const MOST_TARGETS = 100

/** A model id of this name, or undefined, which is reported. */
export function modelId(draft: Draft, name: string, path: string): string | undefined {
  if (MODEL_ID.test(name) && name.length <= 256) return name
  const id = name
    .trim()
    .replaceAll(/[\s*\p{Cc}]+/gu, '-')
    .replaceAll(/\/+/g, '/')
    .replaceAll(/^[/-]+|[/-]+$/g, '')
  if (!MODEL_ID.test(id) || id.length > 256) return void draft.dropped(path, 'it is no name of a model')
  draft.mapped(path, `models.${id}`, 'a name has no white space and no empty part')
  return id
}

/** `strategy`: where more than one target has the same priority. `id`: of the model. */
export function modelTree(draft: Draft, id: string, deployments: readonly Deployment[], strategy: string): Tree {
  const targets = firstOf(draft, deployments, MOST_TARGETS, `models.${id}.targets`)
  const priorities = [...new Set(targets.map(({ priority = 0 }) => priority))].sort((a, b) => a - b)
  const ranked = targets.map((one) => ({ ...one, rank: Math.min(100, priorities.indexOf(one.priority ?? 0)) }))
  const shares = priorities.length < targets.length
  return {
    targets: ranked.map(({ provider, model, weight, rank, when, timeouts, prices }) => ({
      provider,
      model,
      ...(priorities.length > 1 && { priority: rank }),
      ...(weight !== undefined && targets.length > 1 && { weight }),
      ...(when && { when }),
      ...(timeouts && { timeouts }),
      ...(prices && { prices }),
    })),
    ...(shares && { routing: { strategy } }),
  }
}
