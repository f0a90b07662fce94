/** The section `metrics` of `gatehouse.yaml`: the metrics for Prometheus. */
import type Type from 'typebox'
import { flag, integer, oneOf, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

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
