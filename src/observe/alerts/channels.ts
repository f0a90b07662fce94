/** How an alert is delivered: to a webhook, to Slack, or by mail; and its text for people. */
import type { AlertsConfig, EmailConfig } from '../../config/schema/alerts-schema.ts'
import type { JobContext } from '../../jobs/job-loop.ts'
import { type Answer, postSigned } from '../../jobs/signed-post.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import type { Alert, AlertChannel } from '../../store/admin/alert-store.ts'

/** Rejects when the stop interrupts it. Undefined: the channel is no longer configured. */
export type DeliverAlert = (alert: Alert, context: Delivery) => Promise<Answer | undefined>

type Delivery = Pick<JobContext, 'signal' | 'stopping'>

type ChannelParts = { settings(): AlertsConfig; guardedFetch: GuardedFetch; clock: Clock }

export const channelsOf = ({ webhook, slack, email }: AlertsConfig): AlertChannel[] => [
  ...(webhook ? (['webhook'] as const) : []),
  ...(slack ? (['slack'] as const) : []),
  ...(email ? (['email'] as const) : []),
]

/** Where it goes, for the log: never an address with a secret. */
export function receiverOf(channel: AlertChannel, { webhook, slack, email }: AlertsConfig): string | undefined {
  if (channel === 'email') return email?.host
  return URL.parse((channel === 'slack' ? slack : webhook)?.url ?? '')?.host
}

export function createDelivery({ settings, guardedFetch, clock }: ChannelParts): DeliverAlert {
  /** The operator has named the receiver, so it may be private. */
  const post = (url: string, body: string, { signed, ...context }: Delivery & { signed?: Signed }) =>
    postSigned({ guardedFetch, url, body, private_origins: [url], ...(signed && { signed }) }, context)

  return async ({ alert_id, channel, body }, context) => {
    const { webhook, slack, email } = settings()
    switch (channel) {
      case 'webhook': {
        if (!webhook) return undefined
        const { url, secret } = webhook
        const signed = secret === undefined ? undefined : { secret, id: alert_id, timestamp: unixSeconds(clock) }
        return post(url, body, signed ? { ...context, signed } : context)
      }
      case 'slack':
        return slack && post(slack.url, JSON.stringify({ text: slackTextOf(JSON.parse(body) as AlertBody) }), context)
      case 'email':
        return email && sendMail(email, { alert_id, body, ...context })
    }
  }
}

type Signed = { secret: string; id: string; timestamp: number }

/** How long the server may be silent. */
const SMTP_MILLISECONDS = 10_000

/** `status` of the result: 200 where the server has accepted the mail for every receiver, else its SMTP code, or 0. */
async function sendMail(
  { host, tls = 'starttls', port = tls === 'implicit' ? 465 : 587, user, password = '', from, to }: EmailConfig,
  { alert_id, body, signal, stopping }: Delivery & { alert_id: string; body: string },
): Promise<Answer> {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    ...(user === undefined ? {} : { auth: { user, pass: password } }),
    connectionTimeout: SMTP_MILLISECONDS,
    greetingTimeout: SMTP_MILLISECONDS,
    socketTimeout: SMTP_MILLISECONDS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const leave = () => late.reject(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  try {
    // A mail that is sent again has the same id: mail programs show it once.
    const messageId = `<${alert_id}@${from.split('@').at(-1)}>`
    const sending = transport.sendMail({ from, to, messageId, ...mailOf(JSON.parse(body) as AlertBody) })
    const { rejected } = await Promise.race([sending, late.promise])
    return rejected.length === 0 ? { status: 200 } : { status: 550, error: 'receiver_rejected' }
  } catch (error) {
    if (stopping()) throw error
    return { status: smtpStatus(error), error: signal.aborted ? 'timeout' : codeOf(error) }
  } finally {
    signal.removeEventListener('abort', leave)
    transport.close()
  }
}

const smtpStatus = (error: unknown): number =>
  error instanceof Error && 'responseCode' in error && typeof error.responseCode === 'number' ? error.responseCode : 0

/** Only a code: a message of the server may repeat the password. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no_answer'

/** As webhooks get it. `message`: one sentence. */
type AlertBody = { type: string; timestamp: string; message: string; data: Record<string, unknown> }

const MOST_LINES = 60
const MOST_CHARACTERS = 500

const slackTextOf = (alert: AlertBody): string =>
  escapeSlack([`*Gatehouse: ${alert.message}*`, ...linesOf(alert)].join('\n'))

const mailOf = (alert: AlertBody): { subject: string; text: string } => ({
  subject: oneLine(`Gatehouse: ${alert.message}`).slice(0, 200),
  text: [alert.message, '', ...linesOf(alert), ''].join('\n'),
})

function linesOf({ type, timestamp, data }: AlertBody): string[] {
  const members = Object.entries(data).flatMap(([name, value]) =>
    Array.isArray(value)
      ? [`${name}:`, ...value.map((one) => `- ${textOf(one)}`)]
      : value === undefined
        ? []
        : [`${name}: ${textOf(value)}`],
  )
  const shown = members.slice(0, MOST_LINES)
  const left = members.length - shown.length
  return [...shown, ...(left > 0 ? [`and ${left} more lines`] : []), `${type}, ${timestamp}`]
}

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return oneLine(String(value)).slice(0, MOST_CHARACTERS)
  const members = Object.entries(value).map(([name, member]) => `${name} ${String(member)}`)
  return oneLine(members.join(', ')).slice(0, MOST_CHARACTERS)
}

/** Names of models and tokens come from people. */
const oneLine = (text: string): string => text.replaceAll(/[\r\n\t\0]+/g, ' ')

/** As Slack documents it: these three characters, and nothing else. */
const escapeSlack = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
