/** The sections `telemetry` and `metrics` of `gatehouse.yaml`: where traces and logs are exported, and what Prometheus reads. */
import Type from 'typebox'
import { flag, integer, list, mapping, number, oneOf, optional, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const OtlpConfig = section(
  {
    endpoint: text(
      { ...mark.variable, ...mark.sent_to, pattern: '^https?://' },
      'Base URL of an OTLP collector (HTTP, protobuf). OTEL_EXPORTER_OTLP_ENDPOINT wins.',
    ),
    headers: mapping(Type.String(), mark.secret, 'Sent with every export.'),
    traces: flag('A span for each call and attempt. Default true.'),
    metrics: flag('The numbers of /metrics, every minute. Default false.'),
    logs: flag('The rows of the request log. Default false.'),
    sampling: number({ minimum: 0, maximum: 1 }, 'Share of traces exported. OTEL_TRACES_SAMPLER wins. Default 1.'),
    contents: flag('Prompts and responses of chat in spans. Default false.'),
    propagate_to: list(
      Type.String({ minLength: 1 }),
      'Ids of providers that get traceparent and tracestate; "*": all. Default: none.',
    ),
  },
  mark.restart,
  'Needs a restart.',
)
export type OtlpConfig = Type.Static<typeof OtlpConfig>

export const TelemetryConfig = section({ otlp: optional(OtlpConfig) }, 'What the gateway exports about its calls.')
export type TelemetryConfig = Type.Static<typeof TelemetryConfig>

export const MetricsConfig = section(
  {
    enabled: flag('Count calls, and serve /metrics. Default true.'),
    host: text(mark.variable, 'The address of its own listener, with `port`. Default: that of the gateway.'),
    port: integer(
      { minimum: 0, maximum: 65_535 },
      'Of a listener of its own; /metrics then answers only there. Default: none.',
    ),
    require_token: oneOf(
      ['remote', 'always', 'never'],
      'Of clients. remote: all but unproxied ones on this machine. Default remote.',
    ),
  },
  mark.restart,
  'Needs a restart.',
)
export type MetricsConfig = Type.Static<typeof MetricsConfig>
