/**
 * A process that supervises one worker, or that worker: what the tests of the supervisor start. The time of the supervisor
 * advances by the milliseconds of each line that it reads. Its configuration cannot be read again.
 * A worker that finds the file `flag` is not ready before SIGHUP. With `BUSY`, it does not end at SIGTERM, only at SIGINT.
 */
import { existsSync } from 'node:fs'
import { runWorkers } from '../../src/cli/serve/supervisor.ts'
import type { Config } from '../../src/config/config.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { manualClock } from './clock.ts'

const [flag = ''] = process.argv.slice(-1)

if (process.env.GATEHOUSE_WORKER) {
  const print = (event: string) => process.stderr.write(`${JSON.stringify({ event, pid: process.pid })}\n`)
  const ready = () => process.send?.({ is: 'ready' })
  process.on('disconnect', () => process.exit(0)) // a supervisor that was killed asks for nothing
  process.on('SIGHUP', ready)
  process.on('SIGINT', () => process.exit(0))
  process.on('SIGTERM', () => {
    print('a worker is asked to stop')
    if (!process.env.BUSY) process.exit(0)
  })
  process.on('message', ({ is }: { is: string }) => {
    if (is === 'retire') print('a worker is replaced')
  })
  if (existsSync(flag)) print('a worker hangs')
  else ready()
  setInterval(() => {}, 60_000)
} else {
  const clock = manualClock()
  const log = createLog({
    clock: systemClock,
    level: 'info',
    pretty: false,
    write: (text) => void process.stderr.write(text),
  })
  const readTimes = async () => {
    for await (const line of console) {
      clock.advance(Number(line))
      log.info('the time has advanced', {})
    }
  }
  void readTimes()
  const stopped = Promise.withResolvers<string>()
  process.on('SIGTERM', () => stopped.resolve('SIGTERM'))
  process.exit(
    await runWorkers({
      count: 1,
      args: [flag],
      load: () => {
        throw new Error('server.port must be a number')
      },
      config: { server: { shutdown_seconds: 2, drain_seconds: 2 } } as Config,
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
