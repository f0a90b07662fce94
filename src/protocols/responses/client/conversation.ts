/**
 * The bodies of the Conversations API.
 * https://developers.openai.com/api/reference/resources/conversations
 */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose, foundText } from '../../../kit/diagnose.ts'
import { GatewayError, invalidValue } from '../../../spec/error.ts'
import { titled } from '../../../spec/fields.ts'
import type { JsonObject } from '../../../spec/task.ts'
import { assertObject, refusalOf } from '../../shared/request-error.ts'
import { checkedRequest, itemsOf, withoutNulls } from './request.ts'
import { InputItem } from './schema.ts'

/** OpenAI's limits. */
const MAX_ITEMS = 20
const MAX_PAIRS = 16
const MAX_NAME = 64
const MAX_VALUE = 512

const Metadata = Type.Record(Type.String(), Type.String({ maxLength: MAX_VALUE }), {
  maxProperties: MAX_PAIRS,
  description: 'At most 16 pairs; names of at most 64 characters, values of at most 512.',
})
const items = Type.Array(InputItem, { maxItems: MAX_ITEMS, description: 'At most 20 at a time.' })

export const ConversationCreate = titled('ConversationCreate', {
  items: Type.Optional(items),
  metadata: Type.Optional(Metadata),
})
export const ConversationUpdate = titled('ConversationUpdate', { metadata: Metadata })
export const ConversationItemsCreate = titled('ConversationItemsCreate', {
  items: Type.Array(InputItem, { minItems: 1, maxItems: MAX_ITEMS, description: 'At most 20 at a time.' }),
})

export const ConversationAnswer = titled('Conversation', {
  id: Type.String(),
  object: Type.Literal('conversation'),
  created_at: Type.Integer(),
  metadata: Type.Record(Type.String(), Type.String()),
})
export const ConversationDeleted = titled('ConversationDeleted', {
  id: Type.String(),
  object: Type.Literal('conversation.deleted'),
  deleted: Type.Literal(true),
})

const BodyMetadata = Type.Object({ metadata: Type.Optional(Type.Record(Type.String(), Type.String())) })
const checkMetadata = checker(BodyMetadata)

/** The items and the metadata of a body, where `null` counts as absent. Throws GatewayError that names the field. */
export function parseConversation(body: unknown): { items: InputItem[]; metadata: JsonObject | undefined } {
  assertObject(body)
  const given = withoutNulls(body)
  const own: unknown = given.metadata === undefined ? {} : { metadata: given.metadata }
  if (!checkMetadata.Check(own)) throw refusalOf(diagnose(BodyMetadata, own))
  if (own.metadata) assertBounded(own.metadata)
  return { items: parseItems(given.items), metadata: own.metadata }
}

function assertBounded(metadata: Record<string, string>): void {
  const entries = Object.entries(metadata)
  const isBounded =
    entries.length <= MAX_PAIRS &&
    entries.every(([name, value]) => name.length <= MAX_NAME && value.length <= MAX_VALUE)
  if (isBounded) return
  const message = `"metadata" may have at most ${MAX_PAIRS} pairs, with names of at most ${MAX_NAME} characters and values of at most ${MAX_VALUE}.`
  throw invalidValue('metadata', message)
}

/** Items are valid where they are valid as the input of a response. */
function parseItems(given: unknown): InputItem[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) {
    throw new GatewayError('invalid_type', `"items" must be an array, not ${foundText(given)}.`, { param: 'items' })
  }
  if (given.length > MAX_ITEMS) {
    const message = `"items" must be an array of at most ${MAX_ITEMS} items, not ${given.length}.`
    throw invalidValue('items', message)
  }
  try {
    return itemsOf(checkedRequest({ model: 'any', input: given }).input)
  } catch (thrown) {
    throw thrown instanceof GatewayError ? asItemError(thrown) : thrown
  }
}

/** The same error with `items` in place of `input`. */
export function asItemError(error: GatewayError): GatewayError {
  const { param } = error.detail
  if (param === undefined) return error
  const own = param.replace(/^input\b/, 'items')
  return new GatewayError(error.code, error.message.replace(`"${param}"`, `"${own}"`), { ...error.detail, param: own })
}
