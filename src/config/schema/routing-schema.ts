/** How calls are distributed over the keys of a provider and the targets of a model, as the operator writes it. */
import Type from 'typebox'
import { EndpointFamily } from '../../spec/endpoint-family.ts'
import { flag, integer, list, number, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { Prices } from './price-schema.ts'

const weight = (description: string) => number({ minimum: 0, maximum: 1_000_000 }, description)

export const KeyFile = required(
  { ...mark.shown, minLength: 1 },
  'A file with only the key; read again when it changes.',
)

const WrittenKey = section({
  key: text({ ...mark.secret, minLength: 1 }, 'The API key, such as ${NAME} or ${file:path}.'),
  key_file: optional(KeyFile),
  name: text(
    { ...mark.shown, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' },
    'How logs and commands name it. Default: its position, from 1.',
  ),
  weight: weight('Its share. 0: where no other is left. Default 1.'),
  models: list(
    Type.String({ minLength: 1 }),
    { ...mark.shown, minItems: 1 },
    "The provider's model names, as glob patterns. Default: all.",
  ),
})
/** Once it is loaded, `key` is there: that of the file where one is named. */
export type ProviderKey = Type.Static<typeof WrittenKey> & { key: string }
export const ProviderKey = Type.Unsafe<ProviderKey>(WrittenKey)

export const CallLimits = section(
  {
    max: Type.Union([Type.Integer({ minimum: 1, maximum: 100_000 }), Type.Literal('adaptive')], {
      description: 'Open calls; adaptive: as many as it answers without slowing down.',
    }),
    queue: optional(
      section({
        length: integer({ minimum: 0, maximum: 100_000 }, 'Waiting calls. Default 100.'),
        seconds: number({ exclusiveMinimum: 0, maximum: 3_600 }, 'Time until a waiting call gets 429. Default 30.'),
      }),
    ),
  },
  'A limit of its open calls; tokens take turns.',
)
export type CallLimits = Type.Static<typeof CallLimits>

const probes = (description: string) => integer({ minimum: 1, maximum: 100 }, description)

export const HealthConfig = section(
  {
    path: text(
      { ...mark.shown, pattern: '^/[\\x21-\\x7e]{0,1000}$' },
      'Requested without key; 2xx is a success. Default: the model list, with the key; all but 5xx.',
    ),
    interval_seconds: number({ minimum: 1, maximum: 3_600 }, 'Between probes. Default 10.'),
    timeout_seconds: number({ minimum: 0.1, maximum: 60 }, 'Of a probe. Default 2.'),
    unhealthy_after: probes('Failed probes until it is avoided. Default 2.'),
    healthy_after: probes('Successes until it is used again. Default 1.'),
  },
  'Probes. Absent: none.',
)
export type HealthConfig = Type.Static<typeof HealthConfig>

const tokens = (description: string) => integer({ minimum: 0, maximum: 1_000_000_000 }, description)

/** Which requests a target takes. Every condition that is set must hold. */
const TargetConditions = section(
  {
    families: list(EndpointFamily, { minItems: 1 }, 'Of these families.'),
    tools: flag('With tools; false: without.'),
    images: flag('With images; false: without.'),
    min_input_tokens: tokens('Estimated size of chat requests; others have none.'),
    max_input_tokens: tokens('The same.'),
    tags: list(
      Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$' }),
      { ...mark.shown, minItems: 1, maxItems: 16 },
      'With each of these tags in x-gatehouse-tags.',
    ),
    projects: list(
      Type.String({ pattern: '^proj_[A-Za-z0-9]+$' }),
      { ...mark.shown, minItems: 1, maxItems: 100 },
      'Of tokens of these projects, by id.',
    ),
  },
  'Which requests it takes; every condition must hold. Default: all.',
)
export type TargetConditions = Type.Static<typeof TargetConditions>

const seconds = (description: string) => number({ exclusiveMinimum: 0, maximum: 86_400 }, description)

/** Of one target; both bound one try. */
const TargetTimeouts = section({
  first_byte_seconds: seconds('Of each try, also the last.'),
  total_seconds: seconds('Time of a whole try, streams included.'),
})

/** What is set for one target besides its share of the calls. */
export type TargetRules = {
  /** Which requests it takes. Absent: all. */
  when?: TargetConditions | undefined
  timeouts?: Type.Static<typeof TargetTimeouts> | undefined
  /** Where its provider has several keys: the weight of all that may call the model, and how they share it. */
  keys?: { weight: number; shares: readonly { name: string; weight: number }[] } | undefined
}

export const TargetRouting = {
  weight: weight('Its share within its priority. 0: where no other is left. Default 1.'),
  priority: integer(
    { minimum: 0, maximum: 100 },
    'Lower ones are tried first. Default: the position, with strategy `priority` and no weights; else 0.',
  ),
  when: optional(TargetConditions),
  timeouts: optional(TargetTimeouts),
  prices: optional({
    ...Prices,
    description:
      'What its provider charges, in the currency of the prices of the model unless named. Default: those of the model.',
  }),
}

const STICKY = ['conversation', 'prefix'] as const
const STRATEGIES = ['priority', 'weighted', 'least_latency', 'least_busy', 'cheapest'] as const

const modelIds = (description?: string) =>
  Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 20, ...(description ? { description } : {}) })

export const Fallbacks = Type.Union([
  modelIds(),
  section({
    unavailable: optional(modelIds('No target answers, or all are limited.')),
    context_length: optional(modelIds('The input is too long.')),
    content_policy: optional(modelIds('The provider rejects the content.')),
    deprecated: optional(modelIds('The model is deprecated: each call goes to the first.')),
  }),
])
export type Fallbacks = Type.Static<typeof Fallbacks>
export type FallbackReason = 'unavailable' | 'context_length' | 'content_policy' | 'deprecated'

export const RoutingConfig = section({
  strategy: oneOf(
    STRATEGIES,
    'Among targets of one priority. priority: in order, or by weights; weighted: by weights; least_latency: the faster of two random ones; least_busy: fewest open calls; cheapest: lowest estimated price. Default priority.',
  ),
  sticky: oneOf(
    STICKY,
    'Which calls go to the same healthy target and key. conversation: same `prompt_cache_key` or conversation id; prefix: also same tools, system prompt and first message. Default: off.',
  ),
  hedge: flag(
    'Ask a second target if the first byte is later than for 95 % of calls; the slower may be charged. Default false.',
  ),
  tries: integer(
    { minimum: 1, maximum: 20 },
    'Upstream calls for one request. Default: each key and target once, at most 5.',
  ),
  deadline_seconds: number(
    { exclusiveMinimum: 0, maximum: 86_400 },
    'From the arrival of a request to its first byte, over all tries. Default: no limit.',
  ),
  first_byte_seconds: number(
    { exclusiveMinimum: 0, maximum: 86_400 },
    'While another target or fallback is left. Default: 3 times the p99 of the target, 5 to 15 (60 for whole responses).',
  ),
})
export type RoutingConfig = Type.Static<typeof RoutingConfig>
