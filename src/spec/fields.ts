/** Members of requests, of responses and of the configuration. Optional ones have a description. */
import Type, {
  type TArrayOptions,
  type TNumberOptions,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TStringOptions,
} from 'typebox'

/** Its limits may be left out; the description is last. */
type Given<Limits> = [description: string] | [limits: Limits, description: string]

const optionsOf = <Limits extends object>(given: Given<Limits>): Limits & { description: string } => {
  const [limits, description] = given.length === 1 ? [{} as Limits, given[0]] : given
  return { ...limits, description }
}

/** The end of the year 9999, in unix seconds: a greater time is in milliseconds, or a mistake. */
export const LATEST_TIME = 253_402_300_799

/** No other members are allowed. */
export const closed = { additionalProperties: false } as const

export const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const flag = (...given: Given<TSchemaOptions>) => optional(Type.Boolean(optionsOf(given)))
/** A text that must be given. */
export const required = (...given: Given<TStringOptions>) => Type.String(optionsOf(given))
export const text = (...given: Given<TStringOptions>) => optional(required(...given))
export const integer = (...given: Given<TNumberOptions>) => optional(Type.Integer(optionsOf(given)))
export const number = (...given: Given<TNumberOptions>) => optional(Type.Number(optionsOf(given)))

export const oneOf = <const Word extends string>(words: readonly Word[], ...given: Given<TSchemaOptions>) =>
  optional(Type.Enum<Word[]>([...words], optionsOf(given)))

export const list = <Item extends TSchema>(item: Item, ...given: Given<TArrayOptions>) =>
  optional(Type.Array(item, optionsOf(given)))

/** A mapping with any names. */
export const mapping = <Item extends TSchema>(item: Item, ...given: Given<TSchemaOptions>) =>
  optional(Type.Record(Type.String(), item, optionsOf(given)))

/** A mapping with these members and no others. */
export const section = <Members extends TProperties>(members: Members, ...given: Given<TSchemaOptions> | []) =>
  Type.Object(members, { ...closed, ...(given.length > 0 && optionsOf(given as Given<TSchemaOptions>)) })

export const titled = <Members extends TProperties>(title: string, members: Members) => Type.Object(members, { title })

/** One of several kinds of objects, which `type` names. */
export const typed = <Name extends string, Members extends TProperties>(type: Name, members: Members) =>
  Type.Object({ type: Type.Literal(type), ...members })

/** As `titled`, without other members. */
export const closedObject = <Members extends TProperties>(title: string, members: Members) =>
  Type.Object(members, { ...closed, title })

export const orNull = <T extends TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description })

/** Of a page of a list: where it starts and ends. */
export const ID_PAGE = { first_id: orNull(Type.String()), last_id: orNull(Type.String()), has_more: Type.Boolean() }

/** A page of a list in the form of the OpenAI API. */
export const idList = <Item extends TSchema>(title: string, item: Item) =>
  titled(title, { object: Type.Literal('list'), data: Type.Array(item), ...ID_PAGE })

/** The page itself. */
export const idPage = <Row extends { id: string }>(data: Row[], has_more: boolean) => ({
  object: 'list' as const,
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more,
})

/** A parameter of a query, a path or a header. */
export const parameter = (description: string, schema: TSchema = Type.String()) => ({ description, schema })
