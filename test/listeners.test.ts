/** The listeners of a gateway on real ports: the main one, and those of the metrics and of the admin API. */
import { expect, it } from 'bun:test'
import { openListeners } from '../src/cli/serve/listeners.ts'
import { createLog } from '../src/kit/log.ts'
import { OWNER, startAdminGateway } from './kit/admin.ts'
import { manualClock } from './kit/clock.ts'
import { configOf } from './kit/gateway.ts'

it('serves calls, metrics and the admin API, each at its own port only', async () => {
  const { server, metrics, admin } = configOf()
  const settings = { metrics: { ...metrics, port: 0 }, admin: { ...admin, port: 0 } }
  await using gateway = await startAdminGateway(settings)
  let logged = ''
  const log = createLog({
    clock: manualClock(),
    level: 'info',
    pretty: false,
    write(text) {
      logged += text
    },
  })
  const config = { ...configOf(settings), server: { ...server, port: 0 } }
  const opened = await openListeners(config, { log, isShared: false }, async () => gateway.instance)
  log.flush()
  const metrics_url = logged.match(/"url":"(http:[^"]+)\/metrics"/)?.[1] ?? ''
  const ports = [opened.server.url, metrics_url, opened.admin_url]
  const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })
  const statuses = (path: string, secret: string) =>
    Promise.all(ports.map(async (url) => (await fetch(url + path, bearer(secret))).status))
  // Twice: a connection is used again after its first response.
  for (let times = 0; times < 2; times++) {
    expect(await statuses('/v1/models', gateway.token)).toEqual([200, 404, 404])
    expect(await statuses('/metrics', OWNER)).toEqual([404, 200, 404])
    expect(await statuses('/admin/v1/projects', OWNER)).toEqual([404, 404, 200])
    // The console shows it beside its pages.
    expect(await statuses('/manual', OWNER)).toEqual([200, 404, 200])
  }
  await opened.server.stop({ deadline_ms: 0 })
  log.flush()
  expect(logged).not.toContain('without a response')
})
