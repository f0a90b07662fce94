/** Whom the gateway alerts, of what, and when. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const secret = (description: string) =>
  optional(Type.String({ minLength: 1, description: `${description} \${NAME} takes it from the environment.` }))

/** What the operator is alerted of. */
const ALERT_EVENTS = [
  'budget.threshold_reached',
  'budget.refusing',
  'provider.key_refused',
  'provider.certificate_invalid',
  'breaker.open',
  'model.deprecated',
  'task.outcome_unknown',
  'ledger.delayed',
  'ledger.entries_lost',
  'storage.unavailable',
  'disk.low',
] as const
export type AlertEvent = (typeof ALERT_EVENTS)[number]

const Webhook = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', description: 'Where events are posted.' }),
    secret: secret(
      'Signs events as Standard Webhooks do: whsec_ and 24 to 64 bytes in base64. Default: events are not signed.',
    ),
  },
  { ...closed, description: 'Events as JSON.' },
)

const Slack = Type.Object(
  {
    url: Type.String({
      pattern: '^https?://',
      description: 'The incoming webhook, which is a secret: ${NAME} takes it from the environment.',
    }),
  },
  {
    ...closed,
    description: 'Messages to Slack, and to what takes the same: Mattermost, Rocket.Chat, Discord (`/slack`).',
  },
)

const Email = Type.Object(
  {
    host: Type.String({ minLength: 1, description: 'The SMTP server.' }),
    port: optional(
      Type.Integer({ minimum: 1, maximum: 65_535, description: 'Default 587; 465 with `tls: implicit`.' }),
    ),
    tls: optional(
      Type.Enum(['starttls', 'implicit', 'none'], {
        description: 'Default starttls: the server must offer it. `none` sends in plain text, the password as well.',
      }),
    ),
    user: optional(Type.String({ minLength: 1, description: 'Who logs in. Default: no authentication.' })),
    password: secret('Of the user.'),
    from: Type.String({ pattern: '@', description: 'Such as `gatehouse@example.com`.' }),
    to: Type.Array(Type.String({ pattern: '@' }), { minItems: 1, maxItems: 20, description: 'Who gets the mail.' }),
  },
  { ...closed, description: 'Mail by SMTP.' },
)
export type EmailConfig = Type.Static<typeof Email>

export const AlertsConfig = Type.Object(
  {
    webhook: optional(Webhook),
    slack: optional(Slack),
    email: optional(Email),
    events: optional(
      Type.Array(Type.Enum(ALERT_EVENTS), {
        description: 'Of what. Default: of everything.',
      }),
    ),
    breaker_open_minutes: optional(
      Type.Number({ exclusiveMinimum: 0, description: 'How long a target must have failed. Default 5.' }),
    ),
    deprecation_days: optional(
      Type.Integer({
        minimum: 1,
        maximum: 365,
        description: 'How long before a model in use is deprecated or retired. Default 30.',
      }),
    ),
    disk_free_percent: optional(
      Type.Number({ minimum: 0, maximum: 100, description: 'Below which the disk of the data is low. Default 5.' }),
    ),
  },
  { ...closed, description: 'Whom the gateway alerts, such as when a threshold of a budget is reached.' },
)
export type AlertsConfig = Type.Static<typeof AlertsConfig>
