/** `gatehouse route explain`: shows how a request would be routed, and sends nothing. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Explained } from '../../admin/explain-request.ts'
import { requestedModel } from '../../families/shared/call-options.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { meantHint } from '../../kit/nearest.ts'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../../spec/endpoint-family.ts'
import { API_FLAGS, API_OPTIONS_HELP, connectedApi } from '../admin-api.ts'
import { type Arguments, STORE_FLAGS, UsageError } from '../arguments.ts'
import { actionsOf } from '../command.ts'
import { configOf } from '../config-of.ts'
import { withIdleGateway } from '../serve/idle-gateway.ts'
import { headedTable, table } from '../table.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse route explain --model <model> [--family <family>] [--body <file>] [--tags <tags>] [--token-id <id>] [--json]

Shows which targets a request would be sent to, in which order, and within which limits. Sends nothing. Of a running
gateway (--url) with what it remembers of its targets, such as errors; else from the configuration alone.

Options:
  --model <model>         the id of a model, or an alias; default: \`model\` of the body
  --family <family>       the kind of request (default: the first family of the model)
  --body <file>           a JSON request: its \`model\`, \`models\`, \`provider\`, \`stream\`, tools, images and size count
  --token-id <id>         as a request of this token, with the guards of it and its project; needs --url
  --tags <tags>           tags of the request, separated by commas, as in the header x-gatehouse-tags
${API_OPTIONS_HELP}
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data)
  --json                  print one line of JSON

Examples:
  gatehouse route explain --model acme/large
  gatehouse route explain --model acme/large --body request.json --json
`

const FLAGS = {
  model: 'text',
  family: 'text',
  body: 'text',
  tags: 'text',
  'token-id': 'text',
  ...API_FLAGS,
  ...STORE_FLAGS,
} as const

const actions = actionsOf('route', HELP, { explain: { flags: FLAGS, run: explain } })

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  actions(args.length === 0 ? ['--help'] : args, terminal)

async function explain(given: Arguments, terminal: Terminal) {
  const body = await readBody(given.text('body'), terminal.cwd)
  const model = given.text('model') ?? requestedModel(body)
  const tags = given
    .text('tags')
    ?.split(',')
    .map((tag) => tag.trim())
  if (typeof model !== 'string') throw new UsageError('route', 'needs a model, as in --model <model>')
  const family = familyOf(given.text('family'))
  const token_id = given.text('token-id')
  const api = connectedApi(given, terminal)
  if (api) {
    const order = { model, family, stream: body.stream === true, body, tags, token_id }
    const explained = (await api.call('/routing/explain', { method: 'POST', body: order })).body as Explained
    return { data: explained, text: () => asText(explained, terminal) }
  }
  if (token_id !== undefined) throw new UsageError('route', '--token-id needs a running gateway: --url <address>')
  const explained = await withIdleGateway(configOf(given, terminal), terminal, (gateway) =>
    gateway.explain({ model, family, is_stream: body.stream === true, body, tags }),
  )
  return { data: { ...explained, memory: 'none' }, text: () => `${asText(explained, terminal)}\n${NO_MEMORY}\n` }
}

const NO_MEMORY = 'From the configuration alone: the memory of a running gateway is not part of it.'

async function readBody(file: string | undefined, cwd: string): Promise<JsonRecord> {
  if (file === undefined) return {}
  let body: unknown
  try {
    body = JSON.parse(await readFile(resolve(cwd, file), 'utf8'))
  } catch (error) {
    throw new Error(`--body: ${file} cannot be read: ${whyUnreadable(error)}`)
  }
  if (!isRecord(body)) throw new Error(`--body: ${file}: must be a JSON object`)
  return body
}

function familyOf(name: string | undefined): EndpointFamily | undefined {
  const family = ENDPOINT_FAMILIES.find((one) => one === name)
  if (family || name === undefined) return family
  const hint = meantHint(name, ENDPOINT_FAMILIES)
  throw new UsageError('route', `unknown family "${name}"${hint} (families: ${ENDPOINT_FAMILIES.join(', ')})`)
}

function asText(explained: Explained, terminal: Terminal): string {
  const { requested, model, family, status, strategy, sticky, hedge, tries, deadline_seconds, fallbacks } = explained
  const facts = [
    ['model', requested === model ? model : `${model} (requested: ${requested})`],
    ['status', status],
    ['family', family],
    ['strategy', explained.order === 'shared' ? `${strategy}; targets of one priority share the calls` : strategy],
    ['sticky', sticky ?? 'off'],
    ['hedge', hedge ? 'on' : 'off'],
    ['tries', String(tries)],
    ['deadline', deadline_seconds === null ? 'none' : `${deadline_seconds} s`],
    ['gates', explained.plan.gates.join(', ') || 'none'],
    ['guards', explained.plan.guards.join(', ') || 'none'],
    ['cache', explained.plan.cache],
    ...Object.entries(explained.plan.headers).map(([name, value]) => [`header: ${name}`, value]),
    ...Object.entries(fallbacks).map(([reason, ids]) => [`fallback: ${reason}`, ids.join(', ')]),
  ]
  const hasCosts = explained.targets.some(({ expected_cost }) => expected_cost !== undefined)
  const head = [
    'ORDER',
    'TARGET',
    'KEY',
    'PRIORITY',
    'WEIGHT',
    'FIRST BYTE',
    ...(hasCosts ? ['COST'] : []),
    'AVAILABLE',
  ]
  const rows = explained.targets.map((one) => [
    one.order === null ? '-' : String(one.order),
    one.target,
    one.key ?? '-',
    String(one.priority),
    String(one.weight),
    `${one.first_byte_seconds} s`,
    ...(hasCosts ? [one.expected_cost == null ? 'unknown' : String(one.expected_cost)] : []),
    one.available ? 'yes' : `no: ${one.reason}`,
  ])
  return `${table(facts)}\n${headedTable(head, rows, terminal)}`
}
