/** The dashboards and alert rules in `deploy/`: their PromQL is valid, and every metric and label that they name exists. */
import { describe, expect, it } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parser } from '@prometheus-io/lezer-promql'
import { parse } from 'yaml'
import { METRIC_GROUPS } from '../src/observe/metrics/metric-table.ts'
import type { MetricDefinition } from '../src/observe/metrics/metrics.ts'
import { OWNER, startAdminGateway } from './kit/admin.ts'
import { readScrape } from './kit/metrics.ts'

const DEPLOY = join(import.meta.dir, '../deploy')
const definitions = Object.values(METRIC_GROUPS).flatMap((group): MetricDefinition[] => Object.values(group))

/** The labels of each series, those that Prometheus adds included. */
const SERIES = new Map<string, Set<string>>([['up', new Set(['job', 'instance'])]])
for (const { name, type, labels } of definitions) {
  const own = new Set([...labels, 'job', 'instance'])
  if (type !== 'histogram') SERIES.set(name, own)
  else {
    SERIES.set(`${name}_bucket`, new Set([...own, 'le']))
    SERIES.set(`${name}_sum`, own)
    SERIES.set(`${name}_count`, own)
  }
}

type Panel = { title: string; targets: { expr: string; legendFormat: string }[] }
type Dashboard = { uid: string; panels: Panel[] }
type Rule = {
  alert: string
  expr: string
  for?: string
  labels: Record<string, string>
  annotations: Record<string, string>
}
type Rules = { groups: { name: string; rules: Rule[] }[] }

const dashboards = readdirSync(join(DEPLOY, 'grafana')).map((file) => ({
  file,
  dashboard: JSON.parse(readFileSync(join(DEPLOY, 'grafana', file), 'utf8')) as Dashboard,
}))
const { groups } = parse(readFileSync(join(DEPLOY, 'prometheus/gatehouse.rules.yml'), 'utf8')) as Rules
const rules = groups.flatMap((group) => group.rules)

const queries = [
  ...dashboards.flatMap(({ file, dashboard }) =>
    dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: `${file}: ${title}`, expr }))),
  ),
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
].map(({ where, expr }) => ({ where, expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*') }))

/** The metrics and labels that a query names. Throws where it is not PromQL. */
function namesIn(expr: string): { metrics: string[]; labels: string[] } {
  const metrics: string[] = []
  const labels: string[] = []
  parser.parse(expr).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expr.slice(from, from + 40)}`)
      const text = expr.slice(from, to)
      if (type.name === 'Identifier' && node.parent?.type.name === 'VectorSelector') metrics.push(text)
      if (type.name === 'LabelName') labels.push(text)
    },
  })
  return { metrics, labels }
}

describe('deploy/', () => {
  it('has dashboards and rules', () => {
    expect(dashboards.map(({ file }) => file).sort()).toEqual([
      'money-and-limits.json',
      'overview.json',
      'providers.json',
      'tasks.json',
    ])
    expect(new Set(dashboards.map(({ dashboard }) => dashboard.uid)).size).toBe(4)
    expect(rules.length).toBeGreaterThanOrEqual(15)
    expect(queries.length).toBeGreaterThanOrEqual(60)
  })

  it('finds what is no PromQL, and a metric in it', () => {
    expect(() => namesIn('sum by (le (rate(x[5m]))')).toThrow('not PromQL')
    expect(namesIn('sum by (a) (rate(x_total{b="c"}[5m])) / y')).toEqual({
      metrics: ['x_total', 'y'],
      labels: ['a', 'b'],
    })
  })

  it.each(queries.map(({ where, expr }) => [where, expr] as const))('%s names only what exists', (_, expr) => {
    const { metrics, labels } = namesIn(expr)
    expect(metrics.length).toBeGreaterThan(0)
    expect(metrics.filter((name) => !SERIES.has(name))).toEqual([])
    const known = new Set(metrics.flatMap((name) => [...(SERIES.get(name) ?? [])]))
    expect(labels.filter((label) => !known.has(label))).toEqual([])
  })

  it('has rules in the form that Prometheus reads', () => {
    const KEYS = ['alert', 'expr', 'for', 'labels', 'annotations']
    for (const rule of rules) {
      expect(Object.keys(rule).filter((key) => !KEYS.includes(key))).toEqual([])
      expect(rule.alert).toMatch(/^Gatehouse[A-Za-z]+$/)
      expect(rule.for ?? '1m').toMatch(/^\d+[smhd]$/)
      expect(rule.labels.severity).toMatch(/^(info|warning|critical)$/)
      expect(Object.keys(rule.annotations)).toEqual(['summary', 'description'])
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    // promtool checks the rest, where it is installed.
    const promtool = Bun.which('promtool')
    if (!promtool) return
    const { exitCode } = Bun.spawnSync([promtool, 'check', 'rules', join(DEPLOY, 'prometheus/gatehouse.rules.yml')])
    expect(exitCode).toBe(0)
  })

  it('names only metrics that a gateway shows after calls of several kinds', async () => {
    /** They need a collector, an order in doubt, more than 200 values, or the system's own information. */
    const ABSENT =
      /^(up|gatehouse_telemetry_|gatehouse_tasks_outcome_unknown|gatehouse_metrics_label_|process_(open|max)_fds)/
    const prices = { currency: 'USD', input: 1, output: 2, as_of: '2026-01-01' }
    const gateway = await startAdminGateway({
      budgets: [{ amount: 100, window: 'month' }],
      rate_limits: { requests_per_minute: 8 },
      providers: { down: { kind: 'chatcompat', base_url: 'http://127.0.0.1:9/v1', key: 'k' } },
      models: { 'priced/m': { targets: [{ provider: 'sandbox', model: 'general' }], prices, cache: {} }, 'down/m': {} },
    })
    const messages = [{ role: 'user', content: 'Hello' }]
    for (const stream of [false, false, true]) {
      await (await gateway.chat({ model: 'priced/m', messages, stream, temperature: 0 })).arrayBuffer()
    }
    await (await gateway.chat({ model: 'down/m', messages })).arrayBuffer()
    const order = { model: 'sandbox/text-to-3d', prompt: '@sandbox quick=1\nA boat' }
    const accepted = await gateway.call('/v1/3d/generations', { json: order })
    expect(accepted.status).toBeLessThan(300)
    for (let second = 0; second < 60; second++) {
      await gateway.instance.tasks.idle()
      gateway.clock.advance(1_000)
    }
    await gateway.chat({ model: 'no/model', messages })
    for (let n = 0; n < 10; n++) await (await gateway.chat({ model: 'sandbox/general', messages })).arrayBuffer()
    const scraped = await gateway.call('/metrics', { headers: { authorization: `Bearer ${OWNER}` } })
    const names = readScrape(await scraped.text()).names()
    await gateway[Symbol.asyncDispose]()
    const named = new Set(queries.flatMap(({ expr }) => namesIn(expr).metrics))
    expect([...named].filter((name) => !ABSENT.test(name) && !names.has(name))).toEqual([])
  })
})
