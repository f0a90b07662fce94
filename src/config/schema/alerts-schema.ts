/** Whom the gateway alerts, of what, and when. */
import Type from 'typebox'
import { integer, list, number, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const secret = (description: string) =>
  text({ ...mark.secret, minLength: 1 }, `${description} \${NAME} takes it from the environment.`)

const ALERT_EVENTS = [
  'budget.threshold_reached',
  'budget.refusing',
  'provider.key_refused',
  'provider.certificate_invalid',
  'breaker.open',
  'model.deprecated',
  'guard.blocking',
  'task.outcome_unknown',
  'ledger.delayed',
  'ledger.entries_lost',
  'storage.unavailable',
  'disk.low',
] as const
export type AlertEvent = (typeof ALERT_EVENTS)[number]

const Webhook = section(
  {
    url: required(
      { ...mark.origin, ...mark.secret, ...mark.sent_to, pattern: '^https?://' },
      'Where events are posted.',
    ),
    secret: secret('Signs events by Standard Webhooks: whsec_ and 24 to 64 bytes in base64.'),
  },
  'Events as JSON.',
)

const Slack = section(
  {
    url: required({ ...mark.secret, ...mark.sent_to, pattern: '^https?://' }, 'The incoming webhook, a secret.'),
  },
  'Slack, Mattermost, Rocket.Chat or Discord (`/slack`).',
)

const Email = section(
  {
    host: required({ ...mark.variable, ...mark.sent_to, minLength: 1 }, 'The SMTP server.'),
    port: integer({ minimum: 1, maximum: 65_535 }, 'Default 587; 465 with `tls: implicit`.'),
    tls: oneOf(
      ['starttls', 'implicit', 'none'],
      'Default starttls, which the server must offer. `none`: plain text, the password too.',
    ),
    user: text({ ...mark.secret, minLength: 1 }, 'Who logs in. Default: no authentication.'),
    password: secret('Of the user.'),
    from: required({ ...mark.variable, pattern: '@' }, 'Such as `gatehouse@example.com`.'),
    to: Type.Array(Type.String({ pattern: '@' }), {
      ...mark.variable,
      minItems: 1,
      maxItems: 20,
      description: 'Who gets the mail.',
    }),
  },
  'Mail by SMTP.',
)
export type EmailConfig = Type.Static<typeof Email>

export const AlertsConfig = section(
  {
    webhook: optional(Webhook),
    slack: optional(Slack),
    email: optional(Email),
    events: list(Type.Enum(ALERT_EVENTS), 'Of what. Default: of everything.'),
    breaker_open_minutes: number({ exclusiveMinimum: 0 }, 'How long a target must have failed. Default 5.'),
    deprecation_days: integer(
      { minimum: 1, maximum: 365 },
      'Before a model in use is deprecated or retired. Default 30.',
    ),
    guard_blocks_per_minute: integer(
      { minimum: 1 },
      'Blocks by one guard from which `guard.blocking` alerts. Default 30.',
    ),
    disk_free_percent: number({ minimum: 0, maximum: 100 }, 'Below which the disk is low. Default 5.'),
  },
  'Whom the gateway alerts.',
)
export type AlertsConfig = Type.Static<typeof AlertsConfig>
