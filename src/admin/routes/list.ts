/** Pages of the admin API's lists: `limit` and an opaque `cursor`; answers `{data, next_cursor}`. */
import Type, { type TSchema } from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { invalidValue } from '../../spec/error.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import type { Parameter } from '../../spec/operation.ts'
import type { AccountFilter } from '../../store/tokens/account-store.ts'
import { adminRoute } from './route.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
const MAX_TEXT = 200

/** `after`: the values that `listAnswer` was given as the start of this page. */
type ListPage = { limit: number; after?: string[] }

/** Throws invalid_value. */
export function readPage(query: URLSearchParams): ListPage {
  const [limit = DEFAULT_LIMIT, cursor] = [readInteger(query, 'limit', MAX_LIMIT), query.get('cursor')]
  return { limit, ...(cursor && { after: readCursor(cursor) }) }
}

/** An integer from 1; undefined: it is not given. Throws invalid_value. */
export function readInteger(query: URLSearchParams, param: string, most: number): number | undefined {
  const text = query.get(param)
  if (text === null) return undefined
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (value >= 1 && value <= most) return value
  throw invalidValue(param, `"${param}" must be an integer from 1 to ${most}.`)
}

/** One of these words; undefined: it is not given. Throws invalid_value. */
export function readOneOf<const Word extends string>(
  query: URLSearchParams,
  param: string,
  words: readonly Word[],
): Word | undefined {
  const text = query.get(param)
  const known = words.find((word) => word === text)
  if (known !== undefined || text === null) return known
  throw invalidValue(param, `"${param}" must be one of ${words.join(', ')}.`)
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
  throw invalidValue('cursor', '"cursor" must be the next_cursor of the page before, with the same filters.')
}

/** `next`: where the next page starts; undefined: this is the last. */
export const listAnswer = (
  data: unknown[],
  next: readonly (string | number)[] | undefined,
  more: Record<string, unknown> = {},
): Response => Response.json({ data, next_cursor: next ? cursorOf(next) : null, ...more })

type PageParts<Row> = {
  limit: number
  view(row: Row): unknown
  keyOf(row: Row): readonly (string | number)[]
  more?: Record<string, unknown>
}

/** `rows`: of this page, and more where there is a next one. `keyOf`: the place of a row. */
export async function pageAnswer<Row>(
  rows: readonly Row[],
  { limit, view, keyOf, more }: PageParts<Row>,
): Promise<Response> {
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return listAnswer(await Promise.all(rows.slice(0, limit).map(view)), last && keyOf(last), more)
}

/** A page of rows that are all in memory, in the order of their places. */
export function pageOfAll<Row>(
  context: Context,
  rows: readonly Row[],
  { view, placeOf }: { view(row: Row): unknown; placeOf(row: Row): string },
): Promise<Response> {
  const { limit, after: [start] = [] } = readPage(context.query())
  const rest = start === undefined ? rows : rows.filter((row) => placeOf(row) > start)
  return pageAnswer(rest, { limit, view, keyOf: (row) => [placeOf(row)] })
}

/** Names the last row of a page. */
export const cursorOf = (place: readonly (string | number)[]): string =>
  Buffer.from(JSON.stringify(place.map(String))).toString('base64url')

export const listSchema = (item: TSchema, title: string, more: Record<string, TSchema> = {}) =>
  titled(title, {
    data: Type.Array(item),
    next_cursor: orNull(Type.String(), 'The `cursor` of the next page; null: this is the last.'),
    ...more,
  })

const LIST_PARAMETERS: Record<string, Parameter> = {
  limit: parameter(`Default ${DEFAULT_LIMIT}.`, Type.Integer({ minimum: 1, maximum: MAX_LIMIT })),
  cursor: parameter('The `next_cursor` of the page before.'),
}

type ListParts = Omit<Parameters<typeof adminRoute>[1], 'response'> & {
  /** The items, the title of the page, and what else it has. */
  of: Parameters<typeof listSchema>
}

/** A route that answers one page of a list. */
export const listRoute = (
  place: Parameters<typeof adminRoute>[0],
  { of, query, errors = [], ...described }: ListParts,
): Route =>
  adminRoute(place, {
    ...described,
    query: { ...LIST_PARAMETERS, ...query },
    response: listSchema(...of),
    errors: ['invalid_value', ...errors],
  })

/** What is searched for; empty: nothing. Throws invalid_value. */
export function readText(query: URLSearchParams): string {
  const text = query.get('q') ?? ''
  if (text.length <= MAX_TEXT && !text.includes('\0')) return text
  throw invalidValue('q', `"q" must be at most ${MAX_TEXT} characters, without a null character.`)
}

export const textParameter = (description: string): Parameter =>
  parameter(description, Type.String({ maxLength: MAX_TEXT }))

/** The filters of a list of tokens or projects. Throws invalid_value. */
export function readAccountFilter(query: URLSearchParams): AccountFilter {
  const [text, active, order] = [readText(query), query.get('active'), query.get('order')]
  if (active !== null && active !== 'true' && active !== 'false')
    throw invalidValue('active', '"active" must be "true" or "false".')
  if (order !== null && order !== 'newest' && order !== 'oldest')
    throw invalidValue('order', '"order" must be "newest" or "oldest".')
  return {
    ...(text !== '' && { text }),
    ...(active !== null && { is_active: active === 'true' }),
    ...(order === 'newest' && { newestFirst: true }),
  }
}

/** Of the query. */
export const FLAG = Type.Union([Type.Literal('true'), Type.Literal('false')])

export const ACCOUNT_PARAMETERS: Record<string, Parameter> = {
  q: textParameter('Only those with this text in their name, or whose id starts with it.'),
  active: parameter('`true`: neither disabled nor expired; `false`: the others. Default: all.', FLAG),
  order: parameter(
    'By the time of creation. Default `oldest`: first.',
    Type.Union([Type.Literal('newest'), Type.Literal('oldest')]),
  ),
}
