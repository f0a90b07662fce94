/**
 * A process that supervises one worker, or that worker, which neither starts nor ends once a file exists: what the tests of
 * the supervisor start. Its configuration cannot be read again. `SHORT`: its timers are short.
 */
import { existsSync } from 'node:fs'
import { runWorkers } from '../../src/cli/workers.ts'
import type { Config } from '../../src/config/config.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'

const [flag = ''] = process.argv.slice(-1)

if (process.env.GATEHOUSE_WORKER) {
  process.on('SIGTERM', () => process.exit(0))
  if (existsSync(flag)) process.stderr.write('{"event":"a worker hangs"}\n')
  else process.send?.({ is: 'ready' })
  setInterval(() => {}, 60_000)
} else {
  const SHORT_MS = 300
  const clock = {
    ...systemClock,
    after: (ms: number, work: () => void) => systemClock.after(process.env.SHORT ? Math.min(ms, SHORT_MS) : ms, work),
  }
  const log = createLog({ clock, level: 'info', pretty: false, write: (text) => void process.stderr.write(text) })
  const stopped = Promise.withResolvers<string>()
  process.on('SIGTERM', () => stopped.resolve('SIGTERM'))
  process.exit(
    await runWorkers({
      count: 1,
      args: [flag],
      load: () => {
        throw new Error('server.port must be a number')
      },
      config: { server: { shutdown_seconds: 1 } } as Config,
      terminal: {
        cwd: process.cwd(),
        environment: process.env,
        interactive: false,
        color: false,
        out: () => {},
        err: (text: string) => void process.stderr.write(text),
      },
      clock,
      log,
      stopped: { first: stopped.promise, second: new Promise(() => {}) },
    }),
  )
}
