/** The section `telemetry` of `gatehouse.yaml`: where traces and logs are exported. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const flag = (description: string) => optional(Type.Boolean({ description }))

const OtlpConfig = Type.Object(
  {
    endpoint: optional(
      Type.String({
        pattern: '^https?://',
        description:
          'Base URL of an OTLP collector (HTTP, protobuf), without /v1/traces, such as http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_ENDPOINT wins.',
      }),
    ),
    headers: optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'Sent with every export; ${NAME} takes a value from the environment.',
      }),
    ),
    traces: flag('Export a span for each call and each of its attempts. Default true.'),
    metrics: flag('Export the numbers of /metrics, every minute. Default false.'),
    logs: flag('Export the rows of the request log. Default false.'),
    sampling: optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'Share of traces exported; a traceparent follows its client. OTEL_TRACES_SAMPLER wins. Default 1.',
      }),
    ),
    contents: flag('Put prompts and responses of chat into spans, at most 16,384 characters of each. Default false.'),
    propagate_to: optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description: 'Ids of the providers, your own, that get traceparent and tracestate; "*" is all. Default: none.',
      }),
    ),
  },
  { ...closed, description: 'Export by the OpenTelemetry protocol. Takes effect at the next start.' },
)
export type OtlpConfig = Type.Static<typeof OtlpConfig>

export const TelemetryConfig = Type.Object(
  { otlp: optional(OtlpConfig) },
  { ...closed, description: 'What the gateway exports about its calls.' },
)
export type TelemetryConfig = Type.Static<typeof TelemetryConfig>
