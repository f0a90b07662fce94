/** The Helm chart in deploy/: its files are those of deploy/, and what it renders is what the gateway needs and Kubernetes takes. */
import { describe, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import metadata from '../../package.json' with { type: 'json' }
import { readEnvironment } from '../../src/config/load/environment.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import { METRIC_GROUPS } from '../../src/observe/metrics/metric-table.ts'
import { DEPLOY, findTool, kubernetesSchemas, runTool } from './tools.ts'

const CHART = join(DEPLOY, 'helm/gatehouse')
const VALUES = join(import.meta.dir, 'values')
/** The newest that was tried. Helm built without its release flags takes a very old one. */
const KUBERNETES = '1.37.0'
const helm = findTool('helm', 'the chart')
const kubeconform = findTool('kubeconform', 'the manifests of the chart')
const schemas = kubernetesSchemas()

// biome-ignore lint/suspicious/noExplicitAny: manifests are read as they are written
type Manifest = any

const read = (name: string) => parse(readFileSync(join(CHART, name), 'utf8'))

async function template(args: string[]): Promise<string> {
  const { code, out, err } = await runTool([
    helm ?? '',
    'template',
    'one',
    CHART,
    '--kube-version',
    KUBERNETES,
    ...args,
  ])
  if (code !== 0)
    throw new Error(
      err
        .split('\n')
        .filter((line) => !line.includes('symbolic link'))
        .join('\n'),
    )
  return out
}
const manifests = async (args: string[]): Promise<Manifest[]> =>
  parseAllDocuments(await template(args))
    .map((document) => document.toJS())
    .filter(Boolean)
const withValues = (name: string) => ['--values', join(VALUES, `${name}.yaml`)]
const kind = (all: Manifest[], name: string): Manifest => all.find((one) => one.kind === name)
const podOf = (all: Manifest[]): Manifest => kind(all, 'StatefulSet').spec.template

describe('the chart', () => {
  it('has the version of the gateway', () => {
    expect(read('Chart.yaml')).toMatchObject({ version: metadata.version, appVersion: metadata.version })
  })

  it('takes the alerts and dashboards from where they are: there is no copy', () => {
    expect(realpathSync(join(CHART, 'files/grafana'))).toBe(realpathSync(join(DEPLOY, 'grafana')))
    expect(realpathSync(join(CHART, 'files/gatehouse.rules.yml'))).toBe(
      realpathSync(join(DEPLOY, 'prometheus/gatehouse.rules.yml')),
    )
  })

  it('has a schema that names every value', () => {
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'))
    expect(Object.keys(schema.properties).filter((name) => name !== 'global')).toEqual(Object.keys(read('values.yaml')))
  })

  it('scales by a metric that the gateway has', () => {
    const names = Object.values(METRIC_GROUPS).flatMap((group) => Object.values(group).map(({ name }) => name))
    const [, name = ''] =
      /metric: \{ name: (\w+) \}/.exec(readFileSync(join(CHART, 'templates/availability.yaml'), 'utf8')) ?? []
    expect(names).toContain(name)
  })
})

describe.skipIf(helm === null)('the chart, rendered by helm', () => {
  it('is accepted by helm lint, which rejects a broken one', async () => {
    const { code, out } = await runTool([helm ?? '', 'lint', '--strict', CHART, '--kube-version', KUBERNETES])
    expect([code, out]).toEqual([0, expect.stringContaining('0 chart(s) failed')])
    const broken = mkdtempSync(join(tmpdir(), 'gatehouse-chart-'))
    writeFileSync(join(broken, 'Chart.yaml'), 'apiVersion: v2\nname: broken\n')
    expect((await runTool([helm ?? '', 'lint', broken])).code).toBe(1)
    rmSync(broken, { recursive: true })
  })

  it('rejects a value that it does not know, and several gateways on SQLite', async () => {
    await expect(template(['--set', 'replica=2'])).rejects.toThrow('replica')
    await expect(template(['--set', 'replicas=2'])).rejects.toThrow('need database.existingSecret')
    await expect(template(['--set', 'image.digest=latest'])).rejects.toThrow('digest')
  })

  it('runs one gateway on a volume, without a migration job', async () => {
    const all = await manifests(withValues('alone'))
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      'ConfigMap',
      'NetworkPolicy',
      'Service',
      'Service',
      'ServiceAccount',
      'StatefulSet',
    ])
    const { spec } = kind(all, 'StatefulSet')
    expect(spec.replicas).toBe(1)
    expect(spec.volumeClaimTemplates[0].spec).toEqual({
      accessModes: ['ReadWriteOncePod'],
      storageClassName: 'fast',
      resources: { requests: { storage: '20Gi' } },
    })
    const [container] = spec.template.spec.containers
    expect(container.envFrom).toEqual([{ secretRef: { name: 'vendor-keys' } }])
    expect(container.volumeMounts).toContainEqual({
      name: 'secret-acme',
      mountPath: '/etc/gatehouse/secrets/acme',
      readOnly: true,
    })
  })

  it('migrates PostgreSQL before it changes the pods, by a job whose failure fails the release', async () => {
    const all = await manifests(withValues('team'))
    const job = kind(all, 'Job')
    expect(job.metadata.annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade')
    expect(job.spec.template.spec.restartPolicy).toBe('Never')
    const [migrate] = job.spec.template.spec.containers
    const [gateway] = podOf(all).spec.containers
    expect(migrate.args).toEqual(['migrate', 'apply'])
    expect(migrate.image).toBe(gateway.image)
    const database = { name: 'gatehouse-database', key: 'uri' }
    for (const { env } of [migrate, gateway])
      expect(env).toContainEqual({ name: 'GATEHOUSE_DATABASE_URL', valueFrom: { secretKeyRef: database } })
    // It runs before everything else of the release is there, and no service may send calls to it.
    expect(job.spec.template.spec.serviceAccountName).toBeUndefined()
    const labels = job.spec.template.metadata.labels
    expect(labels).not.toMatchObject(kind(all, 'Service').spec.selector)
    expect(parse(kind(all, 'ConfigMap').data['gatehouse.yaml']).store).toEqual({ migrate: 'manual' })
  })

  it.each(['alone', 'team', 'everything'])(
    'runs as the user of the image on a root that is read only (%s)',
    async (name) => {
      const all = await manifests(withValues(name))
      const jobs = all.filter((one) => one.kind === 'Job').map((one) => one.spec.template.spec)
      const image = readFileSync(join(DEPLOY, 'Dockerfile'), 'utf8')
      const [, user] = /^USER (\d+):\1$/m.exec(image) ?? []
      for (const spec of [podOf(all).spec, ...jobs]) {
        expect(spec.automountServiceAccountToken).toBe(false)
        const id = Number(user)
        expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: id, runAsGroup: id, fsGroup: id })
        for (const container of spec.containers) {
          expect(container.securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          })
          expect(container.resources.limits.memory).toBeString()
          expect(container.volumeMounts.map(({ mountPath }: Manifest) => mountPath)).toContain('/tmp')
          const volumes = [...spec.volumes, ...(spec === podOf(all).spec ? [{ name: 'data' }] : [])].map(
            (one) => one.name,
          )
          for (const { name } of container.volumeMounts) expect(volumes).toContain(name)
        }
      }
    },
  )

  it.each(['alone', 'team', 'everything'])(
    'gives the gateway the time that its configuration needs to stop (%s)',
    async (name) => {
      const all = await manifests(withValues(name))
      const { server } = parse(kind(all, 'ConfigMap').data['gatehouse.yaml'])
      const { terminationGracePeriodSeconds, containers } = podOf(all).spec
      const preStop = containers[0].lifecycle.preStop.sleep.seconds
      expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(preStop + server.shutdown_seconds + 10)
      expect(containers[0].readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'http' })
      expect(containers[0].livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'http' })
    },
  )

  it.each(['alone', 'team', 'everything'])(
    'writes a configuration and variables that the gateway reads (%s)',
    async (name) => {
      const all = await manifests(withValues(name))
      const directory = mkdtempSync(join(tmpdir(), 'gatehouse-chart-'))
      const path = join(directory, 'gatehouse.yaml')
      // The file of the secret is in the cluster.
      const text = kind(all, 'ConfigMap').data['gatehouse.yaml'].replace(/\$\{file:[^}]*\}/, 'a-key')
      writeFileSync(path, text)
      const config = loadConfig({ cwd: directory, environment: {} })
      rmSync(directory, { recursive: true })
      const ports = podOf(all).spec.containers[0].ports
      expect(ports).toEqual([
        { name: 'http', containerPort: config.server.port },
        { name: 'metrics', containerPort: config.metrics.port },
      ])
      const environment = Object.fromEntries(
        podOf(all).spec.containers[0].env.map(({ name, value }: Manifest) => [name, value ?? 'postgres://u:p@h/d']),
      )
      expect(() => readEnvironment({ environment, cwd: '/' })).not.toThrow()
    },
  )

  it('replaces pods for a setting that needs a restart, and leaves others to the running gateway', async () => {
    const checksum = async (...args: string[]) =>
      podOf(await manifests(args)).metadata.annotations['checksum/config'] as string
    const before = await checksum()
    expect(await checksum('--set', 'config.server.shutdown_seconds=61')).not.toBe(before)
    expect(await checksum('--set', 'config.request_log.reader=clickhouse')).not.toBe(before)
    expect(await checksum('--set', 'config.admin.port=8790')).not.toBe(before)
    expect(await checksum('--set', 'config.request_log.keep_days=8')).toBe(before)
    expect(await checksum('--set', 'config.models.a.targets[0].provider=sandbox')).toBe(before)
    const restart = ['--set', 'configReload.mode=restart']
    expect(await checksum(...restart, '--set', 'config.models.a.targets[0].provider=sandbox')).not.toBe(
      await checksum(...restart),
    )
    // A directory follows a change; a single file of it would not.
    const mounts = podOf(await manifests([])).spec.containers[0].volumeMounts
    expect(mounts.filter((mount: Manifest) => 'subPath' in mount)).toEqual([])
  })

  it('has everything: scaling, monitoring with the alerts and dashboards of deploy/, who may connect', async () => {
    const all = await manifests(withValues('everything'))
    expect(kind(all, 'StatefulSet').spec.replicas).toBeUndefined()
    const { metrics, scaleTargetRef } = kind(all, 'HorizontalPodAutoscaler').spec
    expect(scaleTargetRef).toMatchObject({ kind: 'StatefulSet', name: kind(all, 'StatefulSet').metadata.name })
    expect(metrics[0].pods.target).toEqual({ type: 'AverageValue', averageValue: '50' })
    expect(kind(all, 'PodDisruptionBudget').spec.maxUnavailable).toBe(1)
    const rules = parse(readFileSync(join(DEPLOY, 'prometheus/gatehouse.rules.yml'), 'utf8'))
    expect(kind(all, 'PrometheusRule').spec).toEqual(rules)
    const dashboards = all.filter(({ kind, metadata }) => kind === 'ConfigMap' && metadata.labels.grafana_dashboard)
    expect(dashboards.map(({ data }) => data)).toEqual(
      readdirSync(join(DEPLOY, 'grafana'))
        .sort()
        .map((name) => ({ [name]: readFileSync(join(DEPLOY, 'grafana', name), 'utf8') })),
    )
    const monitor = kind(all, 'ServiceMonitor').spec
    const scraped = all.filter(
      ({ kind, metadata }) =>
        kind === 'Service' &&
        Object.entries(monitor.selector.matchLabels).every(([key, value]) => metadata.labels[key] === value),
    )
    expect(scraped.map(({ spec }) => spec.ports)).toEqual([[{ name: 'metrics', port: 9100, targetPort: 'metrics' }]])
    // The alerts ask for this job.
    expect(scraped[0].metadata.labels[monitor.jobLabel]).toBe('gatehouse')
    // An empty list of sources allows nobody, and is no rule.
    expect(kind(all, 'NetworkPolicy').spec.ingress).toEqual([
      { from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [{ port: 'http', protocol: 'TCP' }] },
    ])
  })

  describe.skipIf(kubeconform === null || schemas.length === 0)('kubeconform', () => {
    const check = ({ directory, version }: (typeof schemas)[number], text: string) =>
      runTool(
        [kubeconform ?? '', '-strict', '-summary', '-kubernetes-version', version.slice(1)]
          // Of the Prometheus operator: the test above compares what is in them.
          .concat('-skip', 'ServiceMonitor,PrometheusRule')
          .concat('-schema-location', `${directory}/{{.ResourceKind}}{{.KindSuffix}}.json`, '-'),
        text,
      )

    it.each(['alone', 'team', 'everything'])('finds nothing wrong in the manifests (%s)', async (name) => {
      const text = await template(withValues(name))
      for (const schema of schemas)
        expect((await check(schema, text)).out).toMatch(/Valid: (?!0)\d+, Invalid: 0, Errors: 0/)
    })

    it('finds a field that Kubernetes does not have', async () => {
      const text = (await template([])).replace('terminationGracePeriodSeconds', 'terminationGraceSeconds')
      for (const schema of schemas) expect((await check(schema, text)).code).toBe(1)
    })
  })
})
