/** Pages of the admin API's lists: `limit` and an opaque `cursor`; answers `{data, next_cursor}`. */
import Type, { type TSchema } from 'typebox'
import { GatewayError } from '../../spec/error.ts'
import type { Parameter } from '../../spec/operation.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** `after`: the values that `listAnswer` was given as the start of this page. */
type ListPage = { limit: number; after?: string[] }

const invalid = (param: string, message: string) => new GatewayError('invalid_value', message, { param })

/** Throws invalid_value. */
export function readPage(query: URLSearchParams): ListPage {
  const [limit, cursor] = [query.get('limit'), query.get('cursor')]
  return { limit: limit === null ? DEFAULT_LIMIT : readLimit(limit), ...(cursor && { after: readCursor(cursor) }) }
}

function readLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalid('limit', `"limit" must be an integer from 1 to ${MAX_LIMIT}.`)
}

function readCursor(text: string): string[] {
  try {
    const values: unknown = JSON.parse(Buffer.from(text.slice(0, 1000), 'base64url').toString())
    if (Array.isArray(values) && values.every((value) => typeof value === 'string' && !value.includes('\0'))) {
      return values
    }
  } catch {
    // not a cursor
  }
  throw invalid('cursor', '"cursor" must be the next_cursor of the page before, with the same filters.')
}

/** `next`: where the next page starts; undefined: this is the last. */
export const listAnswer = (data: unknown[], next: readonly (string | number)[] | undefined): Response =>
  Response.json({
    data,
    next_cursor: next ? cursorOf(next) : null,
  })

/** Names the last row of a page. */
export const cursorOf = (place: readonly (string | number)[]): string =>
  Buffer.from(JSON.stringify(place.map(String))).toString('base64url')

export const listSchema = (item: TSchema, title: string) =>
  Type.Object(
    {
      data: Type.Array(item),
      next_cursor: Type.Union([Type.String(), Type.Null()], {
        description: 'The `cursor` of the next page; null: this is the last.',
      }),
    },
    { title },
  )

export const LIST_PARAMETERS: Record<string, Parameter> = {
  limit: { description: `Default ${DEFAULT_LIMIT}.`, schema: Type.Integer({ minimum: 1, maximum: MAX_LIMIT }) },
  cursor: { description: 'The `next_cursor` of the page before.', schema: Type.String() },
}
