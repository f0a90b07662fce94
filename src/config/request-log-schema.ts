/** The request log, as the operator writes it. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const RequestLogConfig = Type.Object(
  {
    enabled: optional(
      Type.Boolean({ description: 'Record each call in the store, without its contents. Default true.' }),
    ),
    keep_days: optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 3_660, description: 'Days to keep rows. Default 7.' }),
    ),
  },
  closed,
)
export type RequestLogConfig = Type.Static<typeof RequestLogConfig>
