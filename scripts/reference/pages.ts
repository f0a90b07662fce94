/** The generated pages of the manual's reference: each is a list of facts that the code has. */
import { OPTIONS_HELP } from '../../src/cli/accounts.ts'
import { ENVIRONMENT_VARIABLES } from '../../src/config/load/environment.ts'
import { KINDS, type KindRow } from '../../src/config/schema/provider-kinds.ts'
import { METRIC_GROUPS } from '../../src/observe/metrics/metric-table.ts'
import type { MetricDefinition } from '../../src/observe/metrics/metrics.ts'
import { ERRORS, type ErrorCode, shouldRetry } from '../../src/spec/error.ts'
import { commandHelps } from './commands.ts'
import { orderLines } from './orders.ts'
import { apiPaths } from './paths.ts'
import { kindRows, presetRows } from './providers.ts'
import { settingsLists } from './settings.ts'
import { code, definitions } from './table.ts'

export type Page = { path: string; text: string }

const NOTE = '<!--generated:docs:reference-->'

const page = (name: string, title: string, ...parts: string[]): Page => ({
  path: `reference/${name}.md`,
  text: `# ${title}\n\n${NOTE}\n\n${parts.join('\n\n')}\n`,
})

export async function referencePages(): Promise<Page[]> {
  return [
    page(
      'command-line',
      'Commands',
      'Every command of `gatehouse`, its actions and options, which `--help` explains with examples.',
      `*shared* are these options, *local* the last three. With \`--url\` a command works on a running gateway, else on the store, whose changes a running gateway applies within a second.\n\n\`\`\`text\n${OPTIONS_HELP}\n\`\`\``,
      ...(await commandHelps()).map(({ name, help }) => `## ${code(name)}\n\n\`\`\`text\n${help}\n\`\`\``),
    ),
    page(
      'error-codes',
      'Error codes',
      'Every `code` of an error; codes and statuses do not change between versions. The `type` is `invalid_request_error` where none is named. Without "retry" the same request cannot succeed later, and the response has `x-should-retry: false`.',
      definitions(Object.keys(ERRORS).map((name) => errorRow(name as ErrorCode))),
    ),
    page(
      'metrics',
      'Metrics',
      "Every metric at `/metrics`, with its labels ([how to read them](../how-to/monitor.md)). Names in `_total` are counters, others gauges unless they say histogram. `gen_ai_*` are OpenTelemetry's. A label has at most 200 values in a process, a metric 1000 series; the rest is `other`. No label names end users. Of a *shared* one take the maximum of all processes.",
      '## Requests and calls',
      metricList(METRIC_GROUPS.calls),
      '## Limits, tasks, outputs and the database',
      metricList(METRIC_GROUPS.work),
      '## State at the time of the scrape',
      metricList(METRIC_GROUPS.state),
    ),
    page(
      'order-responses',
      'Responses to orders',
      'Where the responses of a provider kind to an order differ from the [general rule](video-vendors.md#when-an-order-is-sent-a-second-time). An order is not sent again unless its line says so.',
      definitions(orderLines()),
    ),
    page(
      'paths',
      'API paths',
      'Every path of the gateway; its `/docs` and `/openapi.json` describe requests and responses. Where no method is named it is GET. Paths need a token unless the page says otherwise.',
      ...(await apiPaths()).map(({ tag, token, rows }) => {
        if (tag === 'Admin') return adminPaths(rows)
        const needs = token === undefined ? '' : `Token: ${token}.\n\n`
        return `## ${tag}\n\n${needs}${nested(rows).join('\n')}`
      }),
    ),
    page(
      'provider-kinds',
      'Provider kinds',
      'Every `kind` of a provider: its families, its API, the default `base_url`, and the variables of its key, region or resource.',
      definitions(kindRows()),
      '## Options',
      'Where no default is named, the name of the model decides, or there is none.',
      optionLists(),
      '## Presets',
      'A `preset` has a kind (`chatcompat`, unless another is named), further APIs (`with`) whose clients it passes through, the base URL, the variable of the key, and families that the kind lacks. What you write takes precedence.',
      definitions(presetRows()),
    ),
    page(
      'settings',
      'Settings',
      'Every setting of `gatehouse.yaml`; none is required unless it says so.',
      'The value after a name is its default; without one it is nothing. `[]` is a list, `.<name>` a map. Where no type is named, it is text or a number, whose bounds are in `gatehouse.schema.json`; `gatehouse check` names them. A *range* has `minimum`, `maximum` and `default`, a *choice* `values` and `default`.',
      settingsLists(),
      '## Environment variables',
      'A variable takes precedence over the file, a flag over both; an empty one is not set. A provider without a `key` takes it from the variables of its [preset or kind](provider-kinds.md).',
      definitions(
        Object.entries(ENVIRONMENT_VARIABLES).map(([name, { default: fallback, meaning }]) => [
          code(name),
          fallback === 'none' ? '' : `default ${code(fallback)}`,
          meaning,
        ]),
      ),
    ),
  ]
}

/** The objects of the admin API: `/docs` has their methods. */
function adminPaths(rows: string[][]): string {
  const names = rows.map(([path = '']) => path.split('/')[3] ?? '')
  return `## Admin\n\nBelow \`/admin/v1\`, with an admin token or session: ${[...new Set(names)].map(code).join(', ')}.`
}

const named = (path: string, methods: string) => (methods === '' ? path : `${path}: ${methods}`)

/** A path below the one before it follows on its line, without what both begin with. */
function nested(rows: string[][]): string[] {
  const lines: string[] = []
  let parent = ''
  for (const [path = '', methods = ''] of rows) {
    const isBelow = parent !== '' && path.startsWith(`${parent}/`)
    if (isBelow) lines[lines.length - 1] += `; ${named(code(path.slice(parent.length)), methods)}`
    else lines.push(`- ${named(code(path), methods)}`)
    if (!isBelow) parent = path === '/' ? '' : path
  }
  return lines
}

const SHARED = ' The same in every process: take the maximum.'

const metricList = (group: Record<string, MetricDefinition>): string =>
  definitions(
    Object.values(group).map(({ name, type, labels, help }) => [
      code(name),
      [
        ...(type === 'histogram' ? ['histogram'] : []),
        ...(help.endsWith(SHARED) ? ['*shared*'] : []),
        ...labels.map(code),
      ].join(', '),
      help.replace(SHARED, ''),
    ]),
  )

function errorRow(name: ErrorCode): string[] {
  const { status, type, when } = ERRORS[name]
  const isUsual = type === 'invalid_request_error'
  const retry = shouldRetry(name) === false ? '' : ', retry'
  return [code(name), `${status}${isUsual ? '' : ` ${code(type)}`}${retry}`, when]
}

const kinds = Object.entries(KINDS) as [string, KindRow][]

/** One line for each kind with options of its own. */
const optionLists = () =>
  kinds
    .filter(([, { options }]) => options !== undefined)
    .map(([kind, { options = {} }]) => {
      const rows = Object.entries(options).map(([name, meaning]) => [code(name), '', meaning])
      return `${code(kind)}:\n\n${definitions(rows)}`
    })
    .join('\n\n')
