/** The section `metrics` of `gatehouse.yaml`: the metrics for Prometheus. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const MetricsConfig = Type.Object(
  {
    enabled: optional(Type.Boolean({ description: 'Whether calls are counted, and /metrics is there. Default true.' })),
    host: optional(
      Type.String({ description: 'The address of its own listener, with `port`. Default: that of the gateway.' }),
    ),
    port: optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_535,
        description: 'The port of a listener of its own; /metrics then answers only there. Default: none.',
      }),
    ),
    require_token: optional(
      Type.Enum(['remote', 'always', 'never'], {
        description:
          'Who needs an admin token that may read. remote: all but unproxied clients on this machine. Default remote.',
      }),
    ),
  },
  { ...closed, description: 'Metrics for Prometheus. Takes effect at the next start.' },
)
export type MetricsConfig = Type.Static<typeof MetricsConfig>
