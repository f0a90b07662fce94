/** A gateway that records the contents of all calls, as a separate process. Its plan is the first argument; it prints its address. */
import { DEFAULT_REQUEST_LOG } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { configOf } from './gateway.ts'

export type ContentsPlan = { store_url: string; data_dir: string; token: string; key: string }

async function run({ store_url, data_dir, token, key }: ContentsPlan): Promise<void> {
  const clock = systemClock
  const log = createLog({ clock, level: 'warn', pretty: false, write: (text) => process.stderr.write(text) })
  const gateway = await createGateway({
    config: configOf({
      data_dir,
      store_url,
      bootstrap_token: token,
      contents_key: key,
      server: { max_delay_ms: 0 },
      request_log: { ...DEFAULT_REQUEST_LOG, contents: { on_for: ['*'] } },
    }),
    environment: {},
    log,
    clock,
    version: '0.0.0-test',
  })
  const server = await listen({ gateway, server: { host: '127.0.0.1', port: 0 }, log })
  process.stdout.write(`${server.url}\n`)
  await new Promise(() => {})
}

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '') as ContentsPlan)
