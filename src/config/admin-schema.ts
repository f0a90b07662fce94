/** The section `admin` of `gatehouse.yaml`: the admin API. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const AdminConfig = Type.Object(
  {
    enabled: optional(Type.Boolean({ description: 'Whether the admin API is there. Default true.' })),
    host: optional(
      Type.String({ description: 'The address of its own listener, with `port`. Default: that of the gateway.' }),
    ),
    port: optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_535,
        description: 'The port of a listener of its own; it then answers only there. Default: none.',
      }),
    ),
    session_hours: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 720,
        description: 'Time after which an administrator must log in again. Default 12.',
      }),
    ),
    idle_minutes: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 43_200,
        description: 'Time without a request after which a session ends. Default 60.',
      }),
    ),
    requests_per_minute: optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'How many requests each administrator may send to each gateway process. Default 1200.',
      }),
    ),
  },
  { ...closed, description: 'The admin API at /admin/v1.' },
)
export type AdminConfig = Type.Static<typeof AdminConfig>
