/** The start message of the gateway. */
import type { Config } from '../../config/config.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { bold, dim, json, type Terminal } from '../terminal.ts'

export type Started = ReturnType<Gateway['summary']> & {
  version: string
  url: string
  config: Config
  first_token: Gateway['first_token']
  /** A link that logs in as owner, once; only at the first start. */
  login: string | undefined
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
  const isSearching = config.discover || Object.values(config.providers).some(({ discover }) => discover)
  const search = isSearching ? `\n  ${dim(terminal, 'Discovery is still looking for providers and models.')}\n` : ''
  return `\n  ${bold(terminal, `Gatehouse ${version}`)}\n\n${lines.join('\n')}\n${search}${firstToken(started, terminal)}\n`
}

export function bannerJson({
  version,
  url,
  config,
  providers,
  models,
  first_token,
  login,
  isOwnSecret,
}: Started): string {
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
    login: login ?? null,
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

function firstToken({ first_token, login, isOwnSecret }: Started, terminal: Terminal): string {
  if (!first_token) return ''
  const link = login ? `\n  To log in as administrator, once, within 15 minutes:\n\n    ${login}\n` : ''
  if (isOwnSecret) return `\n  The first token is the value of GATEHOUSE_BOOTSTRAP_TOKEN.\n${link}`
  return `\n  ${bold(terminal, 'The first token, shown this once:')}\n\n    ${first_token.secret}\n${link}`
}

/** A model that exists whatever discovery finds. */
const SANDBOX_MODEL = 'sandbox/general'

/** Whether the first request can be printed before discovery has ended. */
export const isFirstRequestKnown = ({ models }: Started): boolean => models.some(({ id }) => id === SANDBOX_MODEL)

/** A command that works when pasted, with the models that there are now. */
export function firstRequestText({ first_token, isOwnSecret, url, ...started }: Started): string {
  if (!first_token) return ''
  const secret = isOwnSecret ? '$GATEHOUSE_BOOTSTRAP_TOKEN' : first_token.secret
  const authorization = `-H "Authorization: Bearer ${secret}"`
  const model = firstModel(started)
  if (model === undefined) return `  A first request:\n\n    curl ${url}/v1/models ${authorization}\n\n`
  const body = { model, messages: [{ role: 'user', content: 'What is Gatehouse?' }] }
  return `  A first request:

    curl ${url}/v1/chat/completions \\
      ${authorization} \\
      -H "Content-Type: application/json" \\
      -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'

`
}

/** A chat model; one of a provider that listed its models rather than of one that did not. */
function firstModel({ models, providers, config }: Pick<Started, 'models' | 'providers' | 'config'>) {
  const chat = models
    .filter((one) => one.status === 'active' && one.supported_endpoint_types.includes('chatcompat'))
    .map(({ id }) => id)
  if (chat.includes(SANDBOX_MODEL)) return SANDBOX_MODEL
  const failed = new Set(providers.filter(({ is_failing }) => is_failing).map(({ id }) => id))
  const providerOf = (id: string) => config.models[id]?.targets?.[0]?.provider ?? id.slice(0, id.indexOf('/'))
  return chat.find((id) => !failed.has(providerOf(id))) ?? chat[0]
}
