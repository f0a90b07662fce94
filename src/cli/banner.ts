/** The start message of the gateway. */
import type { Config } from '../config/config.ts'
import type { Gateway } from '../gateway.ts'
import { bold, dim, json, type Terminal } from './terminal.ts'

export type Started = ReturnType<Gateway['summary']> & {
  version: string
  url: string
  config: Config
  first_token: Gateway['first_token']
  /** The first token comes from the operator and is not repeated. */
  isOwnSecret: boolean
}

/** A longer list would scroll the address and the token out of view. */
const MAX_NAMES = 8

export function bannerText(started: Started, terminal: Terminal): string {
  const { version, url, config } = started
  const facts = [
    ['address', url],
    ['docs', `${url}/docs`],
    ['data', config.data_dir],
    ['config', config.file ?? 'no file; all defaults'],
    ['providers', providersText(started)],
    ['models', modelsText(started)],
  ]
  const lines = facts.map(([name = '', fact = '']) => `  ${dim(terminal, name.padEnd(10))} ${fact}`)
  const search = config.discover ? `\n  ${dim(terminal, 'Discovery is still looking for providers and models.')}\n` : ''
  return `\n  ${bold(terminal, `Gatehouse ${version}`)}\n\n${lines.join('\n')}\n${search}${firstToken(started, terminal)}\n`
}

export function bannerJson({ version, url, config, providers, models, first_token, isOwnSecret }: Started): string {
  return json({
    event: 'listening',
    version,
    url,
    docs: `${url}/docs`,
    data_dir: config.data_dir,
    config: config.file ?? null,
    providers,
    models: models.map(({ id }) => id),
    first_token: first_token
      ? { token_id: first_token.token.token_id, ...(isOwnSecret ? {} : { secret: first_token.secret }) }
      : null,
  })
}

function providersText({ providers }: Started): string {
  if (providers.length === 0) return 'none'
  return listed(
    providers.map(({ id, kind, found_by }) => `${id} (${found_by}${kind === 'sandbox' ? ', simulated' : ''})`),
  )
}

function modelsText({ models }: Started): string {
  return models.length === 0 ? 'none' : `${models.length}: ${listed(models.map(({ id }) => id))}`
}

function listed(names: string[]): string {
  const shown = names.slice(0, MAX_NAMES).join(', ')
  return names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown
}

function firstToken({ first_token, isOwnSecret, models, url }: Started, terminal: Terminal): string {
  if (!first_token) return ''
  const intro = isOwnSecret
    ? `  The first token is the value of GATEHOUSE_BOOTSTRAP_TOKEN.\n`
    : `  ${bold(terminal, 'The first token, shown this once:')}\n\n    ${first_token.secret}\n`
  const model = models.find(
    ({ status, supported_endpoint_types }) => status === 'active' && supported_endpoint_types.includes('chatcompat'),
  )
  const preferred = models.find(({ id }) => id === 'sandbox/general') ?? model
  if (!preferred) return `\n${intro}`
  const secret = isOwnSecret ? '$GATEHOUSE_BOOTSTRAP_TOKEN' : first_token.secret
  const body = { model: preferred.id, messages: [{ role: 'user', content: 'What is Gatehouse?' }] }
  return `\n${intro}
  A first request:

    curl ${url}/v1/chat/completions \\
      -H "Authorization: Bearer ${secret}" \\
      -H "Content-Type: application/json" \\
      -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'
`
}
