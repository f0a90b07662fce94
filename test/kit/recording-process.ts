/** A gateway with settings of the request log, as a separate process. Its plan is the first argument; it prints its address. */
import { type Config, DEFAULT_REQUEST_LOG } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { configOf } from './gateway.ts'

export type RecordingPlan = {
  store_url: string
  data_dir: string
  token: string
  request_log: Partial<Config['request_log']>
  /** Of recorded contents. */
  key?: string
}

async function run({ store_url, data_dir, token, key, request_log }: RecordingPlan): Promise<void> {
  const clock = systemClock
  const log = createLog({ clock, level: 'warn', pretty: false, write: (text) => process.stderr.write(text) })
  const gateway = await createGateway({
    config: configOf({
      data_dir,
      store_url,
      bootstrap_token: token,
      ...(key !== undefined && { contents_key: key }),
      server: { max_delay_ms: 0 },
      request_log: { ...DEFAULT_REQUEST_LOG, ...request_log },
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

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '') as RecordingPlan)
