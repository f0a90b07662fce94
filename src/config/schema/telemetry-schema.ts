/** The section `telemetry` of `gatehouse.yaml`: where traces and logs are exported. */
import Type from 'typebox'
import { flag, list, mapping, number, optional, section, text } from '../../spec/fields.ts'
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
