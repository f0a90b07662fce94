/**
 * Moderation by any provider with OpenAI's path: `POST /moderations`. Mistral's responses differ: they have other
 * categories and no `flagged` (`ModerationObject` of its client-python, read 2026-11-22).
 */
import { asRecord, isRecord, memberOf } from '../../kit/json.ts'
import type { ModerationResult } from '../../spec/moderation-request.ts'
import type { ModerationProvider } from '../provider.ts'
import { readTokenCount } from '../text-api.ts'
import { createPost, type PostParts } from '../upstream/post-json.ts'

export function createCompatModerations(parts: PostParts): ModerationProvider {
  const post = createPost(parts)
  return {
    async moderate({ model, inputs, request_id }, signal) {
      // A single input is sent without a list: a list of parts is one input with one result.
      const body = { model, input: inputs.length === 1 ? inputs[0] : inputs }
      const payload = await post.send({ path: '/moderations', model, body, request_id, signal })
      const list = memberOf(payload, 'results')
      if (!Array.isArray(list)) throw post.notUnderstood('no list of results')
      const results = list.map((item) => {
        const result = resultOf(item)
        if (!result) throw post.notUnderstood('a result without categories')
        return result
      })
      const tokens = readTokenCount(payload)
      return { results, ...(tokens === undefined ? {} : { prompt_tokens: tokens }) }
    },
  }
}

const isVerdict = (value: unknown): value is boolean | null => typeof value === 'boolean' || value === null
const isScore = (value: unknown): value is number => typeof value === 'number'
const isTypes = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((type) => typeof type === 'string')

function resultOf(item: unknown): ModerationResult | undefined {
  if (!isRecord(item) || !isRecord(item.categories)) return undefined
  const { flagged, category_applied_input_types: types } = item
  const categories = membersOf(item.categories, isVerdict)
  return {
    flagged: typeof flagged === 'boolean' ? flagged : Object.values(categories).includes(true),
    categories,
    category_scores: membersOf(item.category_scores, isScore),
    ...(isRecord(types) ? { category_applied_input_types: membersOf(types, isTypes) } : {}),
  }
}

/** The members of an object whose values have this type. */
function membersOf<Value>(object: unknown, is: (value: unknown) => value is Value): Record<string, Value> {
  const members = Object.entries(asRecord(object))
  return Object.fromEntries(members.filter((member): member is [string, Value] => is(member[1])))
}
