/** deploy/compose.yaml: every file, variable, port, volume and service that it names exists, and what it starts is pinned. */
import { describe, expect, it } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Config } from '../../src/config/config.ts'
import { ENVIRONMENT_VARIABLES } from '../../src/config/load/environment.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import { DEPLOY } from './tools.ts'

type Service = {
  image: string
  profiles?: string[]
  environment?: Record<string, string>
  volumes?: string[]
  ports?: string[]
  secrets?: string[]
  depends_on?: Record<string, { condition: string; required?: boolean }>
  healthcheck?: { test: string[] }
  restart?: string
  command?: string[]
}
type Compose = {
  services: Record<string, Service>
  volumes: Record<string, unknown>
  secrets: Record<string, { environment: string }>
}

const text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8')
const compose = parse(text) as Compose
const services = Object.entries(compose.services)
const read = (name: string) => readFileSync(join(DEPLOY, name), 'utf8')
const example = read('compose/team.env.example')
/** The variables that a file names as ${NAME}. */
const variablesIn = (content: string) => [...content.matchAll(/\$\{(\w+)(?::-[^}]*)?\}/g)].map(([, name = '']) => name)
const gateway = compose.services.gatehouse as Service
/** What a service that does not go on needs no health check for. */
const endsByItself = (service: Service) => service.restart === undefined

describe('compose.yaml', () => {
  it('starts the gateway alone, and the rest with the profile "team"', () => {
    expect(gateway.profiles).toBeUndefined()
    for (const [name, { profiles }] of services)
      if (name !== 'gatehouse') expect([name, profiles]).toEqual([name, ['team']])
    expect(example).toContain('COMPOSE_PROFILES=team')
    // Without the profile these services are not there.
    for (const { required } of Object.values(gateway.depends_on ?? {})) expect(required).toBe(false)
  })

  it('pins every image to a version', () => {
    for (const [name, { image }] of services)
      if (name !== 'gatehouse') expect(image).toMatch(/:(v?\d+\.\d+(\.\d+)?(-\w+)?|RELEASE\.\d{4}-\d\d-\d\dT[\d-]+Z)$/)
  })

  it('names only files, volumes, secrets and services that exist', () => {
    const used = new Set<string>()
    for (const [name, service] of services) {
      for (const volume of service.volumes ?? []) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('.'))
          expect([name, source, existsSync(join(DEPLOY, source))]).toEqual([name, source, true])
        else used.add(source)
      }
      for (const secret of service.secrets ?? []) expect(Object.keys(compose.secrets)).toContain(secret)
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        const target = compose.services[other] as Service
        expect([other, target !== undefined]).toEqual([other, true])
        if (condition === 'service_healthy') expect(target.healthcheck).toBeDefined()
        if (condition === 'service_completed_successfully') expect(endsByItself(target)).toBe(true)
      }
    }
    expect([...used].sort()).toEqual(Object.keys(compose.volumes).sort())
  })

  it('asks the health of each service that goes on, where its image has a program that can', () => {
    const without = services.filter(([, one]) => !one.healthcheck && !endsByItself(one)).map(([name]) => name)
    // The image of the gateway has its own.
    expect(without.sort()).toEqual(['collector', 'gatehouse'])
    expect(read('Dockerfile')).toContain('HEALTHCHECK')
  })

  it('gives the gateway only variables that it reads, and its configurations those that they name', () => {
    const configured = ['alone', 'team'].flatMap((name) => variablesIn(read(`compose/${name}.yaml`)))
    for (const name of Object.keys(gateway.environment ?? {}))
      expect([...Object.keys(ENVIRONMENT_VARIABLES), ...configured]).toContain(name)
    for (const name of configured) expect(Object.keys(gateway.environment ?? {})).toContain(name)
  })

  it('takes every secret from a variable that the example names without a value', () => {
    const named = [...variablesIn(text), ...Object.values(compose.secrets).map(({ environment }) => environment)]
    const given = [...example.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value] as const)
    expect(named.filter((name) => !given.some(([one]) => one === name))).toEqual([])
    for (const [name, value] of given) if (name.endsWith('PASSWORD')) expect([name, value]).toEqual([name, ''])
    for (const name of variablesIn(example)) expect(given.map(([one]) => one)).toContain(name)
    for (const file of ['deploy/team.env', 'deploy/gatehouse.env']) expect(read('../.gitignore')).toContain(file)
    expect(read('../.dockerignore')).toContain('deploy/*.env')
  })

  it('publishes ports on this machine only', () => {
    for (const [, { ports = [] }] of services) for (const port of ports) expect(port).toStartWith('127.0.0.1:')
  })

  it('names ports at which the services listen', () => {
    const environment = { VALKEY_PASSWORD: 'v', S3_USER: 'u', S3_PASSWORD: 's' }
    const [alone, team] = ['alone', 'team'].map((name) =>
      loadConfig({ cwd: DEPLOY, flags: { config: `compose/${name}.yaml` }, environment }),
    ) as [Config, Config]
    expect(gateway.ports).toEqual([`127.0.0.1:8787:${alone.server.port ?? 8787}`])
    const prometheus = parse(read('compose/prometheus.yml'))
    expect(prometheus.scrape_configs[0].static_configs[0].targets).toEqual([`gatehouse:${team.metrics.port}`])
    const { endpoint } = parse(read('compose/collector.yaml')).receivers.otlp.protocols.http
    expect(team.telemetry.otlp?.endpoint).toBe(`http://collector:${endpoint.split(':')[1]}`)
    const datasource = parse(read('provisioning/datasource.yml')).datasources[0]
    expect(datasource.url).toBe('http://prometheus:9090')
    // Each host that a configuration names is a service.
    const hosts = [...`${example}${read('compose/team.yaml')}`.matchAll(/(?:@|:\/\/)([a-z][a-z0-9]+):\d+/g)].map(
      ([, host]) => host,
    )
    expect([...new Set(hosts)].sort()).toEqual(['collector', 'postgres', 's3', 'valkey'])
    for (const host of hosts) expect(Object.keys(compose.services)).toContain(host as string)
  })

  it('mounts the dashboards, the alerts and their configurations where their programs look', () => {
    const { volumes = [] } = compose.services.grafana as Service
    const { path } = parse(read('provisioning/dashboards.yml')).providers[0].options
    expect(volumes).toContain(`./grafana:${path}:ro`)
    expect(readdirSync(join(DEPLOY, 'grafana')).length).toBeGreaterThan(0)
    const rules = parse(read('compose/prometheus.yml')).rule_files
    const prometheus = compose.services.prometheus as Service
    for (const name of rules) expect(prometheus.volumes).toContain(`./prometheus/${name}:/etc/prometheus/${name}:ro`)
  })
})
