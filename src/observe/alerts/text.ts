/** The text of an alert for people. */

/** As webhooks get it. `message`: one sentence. */
export type AlertBody = { type: string; timestamp: string; message: string; data: Record<string, unknown> }

const MOST_LINES = 60
const MOST_CHARACTERS = 500

export const slackTextOf = (alert: AlertBody): string =>
  escapeSlack([`*Gatehouse: ${alert.message}*`, ...linesOf(alert)].join('\n'))

export const mailOf = (alert: AlertBody): { subject: string; text: string } => ({
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
