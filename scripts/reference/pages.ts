/** The generated pages of the manual's reference: each is a list of facts that the code has. */
import { ENVIRONMENT_VARIABLES } from '../../src/config/load/environment.ts'
import { KINDS, type KindRow } from '../../src/config/schema/provider-kinds.ts'
import { METRIC_GROUPS } from '../../src/observe/metrics/metric-table.ts'
import type { MetricDefinition } from '../../src/observe/metrics/metrics.ts'
import { ERRORS, type ErrorCode, shouldRetry } from '../../src/spec/error.ts'
import { commandHelps, SHARED_OPTIONS } from './commands.ts'
import { orderLines } from './orders.ts'
import { apiPaths } from './paths.ts'
import { kindRows, presetRows } from './providers.ts'
import { settingsLists } from './settings.ts'
import { code, definitions } from './table.ts'

export type Page = { path: string; text: string }

const NOTE = '<!-- Generated: npm run docs:reference -->'

const page = (name: string, title: string, ...parts: string[]): Page => ({
  path: `reference/${name}.md`,
  text: `# ${title}\n\n${NOTE}\n\n${parts.join('\n\n')}\n`,
})

export async function referencePages(): Promise<Page[]> {
  return [
    page(
      'command-line',
      'Commands',
      'This page lists every command of `gatehouse`, its actions and options. `gatehouse <command> --help` says what each option means, with examples.',
      `*shared* are these options, *local* the last three. With \`--url\` a command works on a running gateway, else on the store, whose changes a running gateway applies within a second.\n\n\`\`\`text\n${SHARED_OPTIONS}\n\`\`\``,
      ...(await commandHelps()).map(({ name, help }) => `## ${code(name)}\n\n\`\`\`text\n${help}\n\`\`\``),
    ),
    page(
      'environment-variables',
      'Environment variables',
      'This page lists the environment variables that the gateway reads. A variable takes precedence over the same setting of the configuration file, and a command line flag over both. An empty variable counts as not set.',
      definitions(
        Object.entries(ENVIRONMENT_VARIABLES).map(([name, { default: fallback, meaning }]) => [
          code(name),
          fallback === 'none' ? '' : `default ${code(fallback)}`,
          meaning,
        ]),
      ),
      'A provider without a `key` in the configuration takes it from the variables of its [preset](provider-presets.md) or of its [kind](provider-kinds.md).',
    ),
    page(
      'error-codes',
      'Error codes',
      'This page lists every `code` of an error response. Codes and their statuses stay the same between versions. The `type` is `invalid_request_error` where none is named. Where no "retry" is named, the same request cannot succeed later, and the response has `x-should-retry: false`.',
      definitions(Object.keys(ERRORS).map((name) => errorRow(name as ErrorCode))),
    ),
    page(
      'metrics',
      'Metrics',
      'This page lists every metric at `/metrics`, with its labels. Names in `_total` are counters; others are gauges, unless they say histogram. `gen_ai_*` are those of the semantic conventions of OpenTelemetry for generative AI. A label has at most 200 values in a process, and a metric 1000 series; the rest counts as `other`. No label names end users. What is marked *shared* is the same in every process: take the maximum. [Monitor with Prometheus](../how-to/monitor.md) says how to read them.',
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
      'This page lists where the responses of a provider kind to an order differ from the [general rule](video-vendors.md#when-an-order-is-sent-a-second-time). An order is not sent again unless the line says so.',
      definitions(orderLines()),
    ),
    page(
      'paths',
      'API paths',
      'This page lists every path that the gateway serves; `/docs` and `/openapi.json` of a running gateway describe requests and responses. Paths need a token, as `Authorization: Bearer <token>`, unless the page says otherwise.',
      ...(await apiPaths()).map(({ tag, token, rows }) => {
        const needs = token === undefined ? '' : `Token: ${token}.\n\n`
        return `## ${tag}\n\n${needs}${nested(rows).join('\n')}`
      }),
    ),
    page(
      'provider-kinds',
      'Provider kinds',
      'This page lists every value of `kind` in `providers.<id>`: its families, the API that it calls, the default `base_url`, the variables that supply its key, region or resource if the configuration has none, and its `options`.',
      definitions(kindRows()),
      '## Options',
      optionLists(),
    ),
    page(
      'provider-presets',
      'Provider presets',
      'This page lists every value of `preset` in `providers.<id>`: its kind (`chatcompat`, unless another is named) and further APIs whose clients it passes through, the base URL, the variable of the key, and families where they are not those of the kind. What the configuration has takes precedence.',
      definitions(presetRows()),
    ),
    page(
      'settings',
      'Settings',
      'This page lists every setting of `gatehouse.yaml`; none is required unless it says so. `${NAME}` in a secret, an address, a number or a switch is replaced by the environment variable of that name.',
      'The value after a name is its default; without one it is nothing. A *range* has `minimum`, `maximum` and `default`, a *choice* `values` and `default`. 1–64 includes both ends, >0–64 not 0; 0–64.0 allows fractions. Where no type is named, also of a list, it is text.',
      settingsLists(),
    ),
  ]
}

/** A path below the one before it follows on its line, without what both begin with. */
function nested(rows: string[][]): string[] {
  const lines: string[] = []
  let parent = ''
  for (const [path = '', methods = ''] of rows) {
    const isBelow = parent !== '' && path.startsWith(`${parent}/`)
    if (isBelow) lines[lines.length - 1] += `; ${code(path.slice(parent.length))}: ${methods}`
    else lines.push(`- ${code(path)}: ${methods}`)
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
