/** The samples of proxies in deploy/: each is valid for its proxy, where that is installed, and asks the same of it. */
import { describe, expect, it } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { METADATA_NETWORKS } from '../src/config/check/metadata-hosts.ts'
import { DEFAULT_FILES, DEFAULT_SERVER } from '../src/config/config.ts'
import { networkMatcher } from '../src/kit/address.ts'
import { DEPLOY, findTool, runTool } from './deploy/tools.ts'
import { freePort } from './kit/free-port.ts'
import { bySample, NGINX, startNginx } from './kit/nginx.ts'

const FILES = {
  nginx: 'nginx/gatehouse.conf',
  caddy: 'caddy/Caddyfile',
  haproxy: 'haproxy/haproxy.cfg',
  envoy: 'envoy/envoy.yaml',
}
const sample = (name: keyof typeof FILES): string => readFileSync(join(DEPLOY, FILES[name]), 'utf8')

const [CADDY, HAPROXY, ENVOY] = (['caddy', 'haproxy', 'envoy'] as const).map((name) => findTool(name, FILES[name]))
const SYSTEMD = findTool('systemd-analyze', 'deploy/gatehouse.service')
const HADOLINT = findTool('hadolint', 'deploy/Dockerfile')

async function expectAccepted(command: string[]): Promise<void> {
  const { code, out, err } = await runTool(command)
  expect({ code, text: code === 0 ? '' : out + err }).toEqual({ code: 0, text: '' })
}

describe('the network policy of the chart', () => {
  type Block = { cidr: string; except?: string[] }
  type Rule = { to: { ipBlock?: Block }[]; ports?: { port: number }[] }
  const { egress } = parse(readFileSync(join(DEPLOY, 'helm/gatehouse/values.yaml'), 'utf8')).networkPolicy as {
    egress: Rule[]
  }
  const mayConnect = (address: string, port: number) =>
    egress.some(
      ({ to, ports }) =>
        (ports === undefined || ports.some((one) => one.port === port)) &&
        to.some(
          ({ ipBlock }) =>
            ipBlock && networkMatcher([ipBlock.cidr])(address) && !networkMatcher(ipBlock.except ?? [])(address),
        ),
    )

  it('leads to no metadata service, and to the DNS cache of the node', () => {
    expect(METADATA_NETWORKS.filter((network) => mayConnect(network.replace(/\/.*/, ''), 80))).toEqual([])
    expect([mayConnect('169.254.20.10', 53), mayConnect('169.254.20.10', 80)]).toEqual([true, false])
    expect([mayConnect('203.0.113.7', 443), mayConnect('2001:db8::7', 443)]).toEqual([true, true])
  })
})

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

  it.skipIf(HADOLINT === null)('an image is accepted by hadolint', () =>
    expectAccepted([HADOLINT ?? '', '--no-color', join(DEPLOY, 'Dockerfile')]),
  )

  it.each([
    ['nginx', NGINX, ['-t', '-c'], 'events {} http { server { proxy_bufering off; } }'],
    ['Caddy', CADDY, ['validate', '--adapter', 'caddyfile', '--config'], ':8080 {\n\treverse_proxi a:1\n}'],
    ['HAProxy', HAPROXY, ['-c', '-f'], 'frontend models\n  bind :8080\n  default_backend missing\n'],
    ['Envoy', ENVOY, ['--mode', 'validate', '-c'], 'static_resources: { listener: [] }'],
    ['systemd', SYSTEMD, ['security', '--offline=yes', '--threshold=20'], '[Service]\nExecStart=/bin/true\n'],
    ['hadolint', HADOLINT, [], 'FROM debian\nRUN apt-get install curl\n'],
  ])('%s rejects a broken one', async (name, command, args, text) => {
    if (command === null || command === undefined) return
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-samples-'))
    const file = join(directory, name === 'systemd' ? 'broken.service' : 'broken.yaml')
    writeFileSync(file, text)
    expect((await runTool([command, ...args, file])).code).not.toBe(0)
    rmSync(directory, { recursive: true })
  })

  it.each(Object.keys(FILES) as (keyof typeof FILES)[])('%s has two gateways', (name) => {
    const text = name === 'envoy' ? JSON.stringify(parse(sample(name))) : sample(name)
    for (const port of [8787, 8788]) expect(text).toMatch(new RegExp(`127\\.0\\.0\\.1(:|","port_value":)${port}`))
  })

  /** A proxy of the sample before a server that counts the bytes of bodies. */
  async function startProxy(name: 'nginx' | 'caddy', gateway: number) {
    const port = await freePort()
    if (name === 'nginx') return startNginx(bySample([gateway], port), port)
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-caddy-'))
    const file = join(directory, 'Caddyfile')
    const text = sample('caddy')
      .replace(/127\.0\.0\.1:878[78]/, `127.0.0.1:${gateway}`)
      .replace(/ 127\.0\.0\.1:8788/, '')
      .replace(/^:8080/m, `{\n\tadmin off\n}\nhttp://127.0.0.1:${port}`)
    writeFileSync(file, text)
    const command = [CADDY ?? '', 'run', '--adapter', 'caddyfile', '--config', file]
    const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'ignore', env: { ...process.env, HOME: directory } })
    const url = `http://127.0.0.1:${port}`
    const isUp = () =>
      fetch(url, { keepalive: false }).then(
        () => true,
        () => false,
      )
    while (!(await isUp())) if (child.exitCode !== null) throw new Error('Caddy ended.')
    return {
      url,
      async stop() {
        child.kill('SIGKILL')
        await child.exited
        rmSync(directory, { recursive: true, force: true })
      },
    }
  }

  it.each(['nginx', 'caddy'] as const)('%s lets files pass that are larger than other bodies may be', async (name) => {
    if ((name === 'nginx' ? NGINX : CADDY) === null) return
    const gateway = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      maxRequestBodySize: 2 ** 30,
      fetch: async (request) => Response.json((await request.arrayBuffer()).byteLength),
    })
    const proxy = await startProxy(name, gateway.port ?? 0)
    const send = async (path: string, bytes: number) => {
      const response = await fetch(`${proxy.url}${path}`, { method: 'POST', body: new Uint8Array(bytes) })
      return response.ok ? response.json() : response.status
    }
    const most = DEFAULT_SERVER.max_body_bytes
    expect(await send('/v1/chat/completions', most)).toBe(most)
    // Caddy keeps no body; the gateway refuses it.
    expect(await send('/v1/chat/completions', most + 1)).toBe(name === 'nginx' ? 413 : most + 1)
    for (const path of ['/v1/files', '/v1/messages/batches']) expect(await send(path, most + 1)).toBe(most + 1)
    await proxy.stop()
    await gateway.stop(true)
  })

  it.each([
    ['nginx', sample('nginx'), /client_max_body_size 513m;/],
    ['the ingress of the chart', readFileSync(join(DEPLOY, 'helm/gatehouse/values.yaml'), 'utf8'), /body-size: 513m/],
  ])('%s allows the largest file and its form', (_name, text, limit) => {
    expect(text).toMatch(limit)
    expect(DEFAULT_FILES.max_bytes).toBe(512 * 2 ** 20)
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
