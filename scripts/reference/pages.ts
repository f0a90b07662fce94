/** The generated pages of the manual's reference: each is a list of facts that the code has. */
import { ENVIRONMENT_VARIABLES } from '../../src/config/load/environment.ts'
import { KINDS, type KindRow } from '../../src/config/schema/provider-kinds.ts'
import { METRIC_GROUPS } from '../../src/observe/metrics/metric-table.ts'
import type { MetricDefinition } from '../../src/observe/metrics/metrics.ts'
import { ERRORS, type ErrorCode, shouldRetry } from '../../src/spec/error.ts'
import { FAIL_CODES } from '../../src/spec/task.ts'
import { commandHelps } from './commands.ts'
import { orderRows } from './orders.ts'
import { apiPaths } from './paths.ts'
import { kindRows, presetRows } from './providers.ts'
import { settingsTables } from './settings.ts'
import { code, table } from './table.ts'

export type Page = { path: string; text: string }

const NOTE = '<!-- Generated from the code by `npm run docs:reference`; do not edit. -->'

const page = (name: string, title: string, ...parts: string[]): Page => ({
  path: `reference/${name}.md`,
  text: `# ${title}\n\n${NOTE}\n\n${parts.join('\n\n')}\n`,
})

export async function referencePages(): Promise<Page[]> {
  return [
    page(
      'command-line',
      'Commands',
      'This page lists every command of `gatehouse` with its options, as `--help` prints them.',
      ...(await commandHelps()).map(({ name, help }) => `## ${code(name)}\n\n\`\`\`text\n${help.trim()}\n\`\`\``),
    ),
    page(
      'environment-variables',
      'Environment variables',
      'This page lists the environment variables that the gateway reads. A variable takes precedence over the same setting of the configuration file, and a command line flag over both. An empty variable counts as not set.',
      table(
        ['variable', 'default', 'meaning'],
        Object.entries(ENVIRONMENT_VARIABLES).map(([name, row]) => [code(name), code(row.default), row.meaning]),
      ),
      '## Keys of providers',
      'A provider without a `key` in the configuration takes it from the variable of its [preset](provider-presets.md) or of its [kind](provider-kinds.md).',
      table(['variable', 'kinds'], keyRows()),
    ),
    page(
      'error-codes',
      'Error codes',
      'This page lists every `code` of an error response. Codes and their statuses stay the same between versions. "Retry" says whether the same request may succeed later: the gateway sends `x-should-retry: false` where it cannot.',
      table(
        ['code', 'status', 'type', 'retry', 'when'],
        Object.keys(ERRORS).map((name) => errorRow(name as ErrorCode)),
      ),
    ),
    page(
      'task-fail-codes',
      'Fail codes of tasks',
      'This page lists every `fail_code` of a task that ended as `FAILURE`, and what its client can do.',
      table(
        ['fail_code', 'when', 'what to do'],
        Object.entries(FAIL_CODES).map(([name, { when, advice }]) => [code(name), when, advice]),
      ),
    ),
    page(
      'metrics',
      'Metrics',
      'This page lists every metric at `/metrics`, with its labels. `gen_ai_*` are those of the semantic conventions of OpenTelemetry for generative AI. A label has at most 200 values in a process, and a metric 1000 series; what comes after them counts as `other`. No metric has a label for end users. [Monitor with Prometheus](../how-to/monitor.md) says how to read them.',
      '## Requests and calls',
      metricTable(METRIC_GROUPS.calls),
      '## Limits, tasks, outputs and the database',
      metricTable(METRIC_GROUPS.work),
      '## State at the time of the scrape',
      metricTable(METRIC_GROUPS.state),
    ),
    page(
      'order-responses',
      'Responses to orders',
      "This page lists where the responses of a provider kind to an order differ from the [general rule](video-vendors.md#when-an-order-is-sent-a-second-time). Empty cells follow the rule, which is the gateway's own reading of HTTP statuses. The last column is where the provider describes its errors.",
      table(
        ['kind', 'also "not accepted"', 'also in doubt', 'sent again', 'looked up by', 'documentation'],
        orderRows(),
      ),
    ),
    page(
      'paths',
      'API paths',
      'This page lists every path that the gateway serves. The request and response schemas are at `/docs` and in `/openapi.json` of a running gateway. Paths need a token, as `Authorization: Bearer <token>`, unless the table says otherwise.',
      ...(await apiPaths()).map(({ tag, rows }) => `## ${tag}\n\n${table(['path', 'summary', 'token'], rows)}`),
    ),
    page(
      'provider-kinds',
      'Provider kinds',
      'This page lists every value of `kind` in `providers.<id>`: the API that it calls, the families of models that it serves, where it is called without a `base_url`, the variables that supply its key if the configuration has none, and the `options` that only it has.',
      table(['kind', 'API', 'families', 'default address', 'key from'], kindRows()),
      '## Options',
      table(['kind', 'option', 'meaning'], optionRows()),
    ),
    page(
      'provider-presets',
      'Provider presets',
      'This page lists every value of `preset` in `providers.<id>`. A preset sets the kind, further APIs whose clients it passes through, the base URL, the environment variable of the key and the differences of a provider; what the configuration has takes precedence.',
      table(['preset', 'kind, further APIs', 'base URL', 'key from', 'families'], presetRows()),
    ),
    page(
      'settings',
      'Settings',
      'This page lists every setting of `gatehouse.yaml`. All settings are optional. `${NAME}` in a secret, an address, a number or a switch is replaced by the environment variable of that name.',
      settingsTables(),
    ),
  ]
}

const metricTable = (group: Record<string, MetricDefinition>): string =>
  table(
    ['metric', 'type', 'labels', 'meaning'],
    Object.values(group).map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), help]),
  )

function errorRow(name: ErrorCode): string[] {
  const { status, type, when } = ERRORS[name]
  const retry = shouldRetry(name)
  return [code(name), String(status), code(type), retry === false ? 'no' : 'yes', when]
}

const kinds = Object.entries(KINDS) as [string, KindRow][]

function keyRows(): string[][] {
  const names = [...new Set(kinds.flatMap(([, { environment = [] }]) => environment))].sort()
  return names.map((name) => [
    code(name),
    kinds
      .filter(([, { environment }]) => environment?.includes(name))
      .map(([kind]) => code(kind))
      .join(', '),
  ])
}

const optionRows = () =>
  kinds.flatMap(([kind, { options = {} }]) =>
    Object.entries(options).map(([name, meaning]) => [code(kind), code(name), meaning]),
  )
