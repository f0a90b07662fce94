/** The vendor's list of its models, which comes in pages. */
import { matchesGlob } from '../../kit/glob.ts'
import { isRecord } from '../../kit/json.ts'
import { namedText } from '../../protocols/upstream.ts'
import type { ModelPage } from '../model-list.ts'
import type { DiscoveredModel } from '../provider.ts'

/** Chat models by their shape, whose answers are images. */
const DRAWING = ['gemini-*image*', '*nano-banana*']

/** Those that answer at all; undefined for something that is no such list. */
export function readModelPage(payload: unknown): ModelPage | undefined {
  if (!isRecord(payload)) return undefined
  // The vendor writes an empty list by leaving it out.
  const { models: list = Object.keys(payload).length === 0 ? [] : undefined } = payload
  if (!Array.isArray(list)) return undefined
  const models = list.filter(isRecord).flatMap(({ name, supportedGenerationMethods: methods }): DiscoveredModel[] => {
    const model = namedText(name)?.replace(/^models\//, '') // its place there, which is added again for a question
    const answers = !Array.isArray(methods) || methods.includes('generateContent')
    const embeds = Array.isArray(methods) && methods.includes('embedContent')
    if (model === undefined || !(answers || embeds)) return []
    if (!answers) return [{ model, families: ['embeddings'] }]
    return [DRAWING.some((glob) => matchesGlob(glob, model)) ? { model, families: ['image-generation'] } : { model }]
  })
  return { models, next: namedText(payload.nextPageToken) }
}
