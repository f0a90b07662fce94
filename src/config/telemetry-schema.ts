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
          'The base URL of an OTLP collector (HTTP, protobuf), such as http://127.0.0.1:4318; /v1/traces, /v1/logs and /v1/metrics are appended. OTEL_EXPORTER_OTLP_ENDPOINT wins.',
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
        description:
          'The share of the traces that begin here which is exported. A request with a traceparent follows its client. OTEL_TRACES_SAMPLER wins. Default 1.',
      }),
    ),
    contents: flag(
      'Put the prompts and responses of chat into spans, at most 16,384 characters of each. Whoever reads the traces reads them. Default false.',
    ),
    propagate_to: optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description:
          'Ids of the providers that get the headers traceparent and tracestate with each request; "*" is all. For gateways and model servers of your own. Default: none.',
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
