/** The samples of proxies in deploy/: each is valid for its proxy, where that is installed, and asks the same of it. */
import { describe, expect, it } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { NGINX } from './kit/nginx.ts'

const DEPLOY = join(import.meta.dir, '../deploy')
const FILES = {
  nginx: 'nginx/gatehouse.conf',
  caddy: 'caddy/Caddyfile',
  haproxy: 'haproxy/haproxy.cfg',
  envoy: 'envoy/envoy.yaml',
}
const sample = (name: keyof typeof FILES): string => readFileSync(join(DEPLOY, FILES[name]), 'utf8')

const found = (name: string) => {
  const path = Bun.which(name, { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` })
  if (path === null) process.stderr.write(`The sample for ${name} is not checked by ${name}, which is not installed.\n`)
  return path
}
const [CADDY, HAPROXY, ENVOY, SYSTEMD] = [found('caddy'), found('haproxy'), found('envoy'), found('systemd-analyze')]

async function expectAccepted(command: string[]): Promise<void> {
  const child = Bun.spawn(command, {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, HOME: tmpdir() },
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  expect({ code, text: code === 0 ? '' : out + err }).toEqual({ code: 0, text: '' })
}

describe('the sample for', () => {
  it.skipIf(NGINX === null)('nginx is accepted by nginx', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-samples-'))
    const file = join(directory, 'nginx.conf')
    const include = join(DEPLOY, FILES.nginx)
    writeFileSync(
      file,
      `pid ${directory}/pid; error_log stderr; events {} http { access_log off; include ${include}; }`,
    )
    await expectAccepted([NGINX ?? '', '-t', '-p', directory, '-c', file])
    rmSync(directory, { recursive: true })
  })

  it.skipIf(CADDY === null)('Caddy is accepted by Caddy', () =>
    expectAccepted([CADDY ?? '', 'validate', '--adapter', 'caddyfile', '--config', join(DEPLOY, FILES.caddy)]),
  )

  it.skipIf(SYSTEMD === null)('systemd is accepted by systemd, which finds little that it could do', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-samples-'))
    const file = join(directory, 'gatehouse.service')
    const unit = readFileSync(join(DEPLOY, 'gatehouse.service'), 'utf8')
    // The executable must be there.
    writeFileSync(file, unit.replace('/usr/local/bin/gatehouse serve', `${process.execPath} serve`))
    await expectAccepted([SYSTEMD ?? '', 'verify', file])
    // In tenths: "OK" ends at 2.4.
    await expectAccepted([SYSTEMD ?? '', 'security', '--offline=yes', '--threshold=20', file])
    rmSync(directory, { recursive: true })
  })

  it.skipIf(HAPROXY === null)('HAProxy is accepted by HAProxy', () =>
    expectAccepted([HAPROXY ?? '', '-c', '-f', join(DEPLOY, FILES.haproxy)]),
  )

  it.skipIf(ENVOY === null)('Envoy is accepted by Envoy', () =>
    expectAccepted([ENVOY ?? '', '--mode', 'validate', '-c', join(DEPLOY, FILES.envoy)]),
  )

  it.each(Object.keys(FILES) as (keyof typeof FILES)[])('%s has two gateways', (name) => {
    const text = name === 'envoy' ? JSON.stringify(parse(sample(name))) : sample(name)
    for (const port of [8787, 8788]) expect(text).toMatch(new RegExp(`127\\.0\\.0\\.1(:|","port_value":)${port}`))
  })

  it.each(['caddy', 'haproxy', 'envoy'] as const)('%s asks /readyz', (name) => {
    expect(sample(name)).toContain('/readyz')
  })

  it('Envoy notices a gateway that drains within the default of server.drain_seconds', () => {
    const { static_resources } = parse(sample('envoy'))
    const [check] = static_resources.clusters[0].health_checks
    expect(Number.parseFloat(check.interval) * check.unhealthy_threshold).toBeLessThan(5)
    const [filter] = static_resources.listeners[0].filter_chains[0].filters
    expect(filter.typed_config.route_config.virtual_hosts[0].routes[0].route.cluster).toBe('gatehouse')
    expect(static_resources.clusters[0].load_assignment.cluster_name).toBe('gatehouse')
  })
})
