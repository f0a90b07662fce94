/** A gateway that serves nobody, for commands that show what a running one would do. */
import { existsSync } from 'node:fs'
import { type Config, storePath, storeUrl } from '../../config/config.ts'
import { createGateway, type Gateway } from '../../gateway/gateway.ts'
import { systemClock } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { loadManual } from '../../site/manual/load-manual.ts'
import { VERSION } from '../commands/version.ts'
import { terminalFormat } from '../log-format.ts'
import type { Terminal } from '../terminal.ts'

/** Reads it once its models are discovered, and closes it. */
export async function withIdleGateway<Result>(
  config: Config,
  terminal: Terminal,
  read: (gateway: Gateway) => Result,
): Promise<Result> {
  const { environment, interactive, err } = terminal
  const clock = systemClock
  const level = config.log_level === 'info' ? 'warn' : config.log_level
  const log = createLog({ clock, level, pretty: interactive && terminalFormat(terminal), write: err })
  // Reading must not create a store with a first token: without one, an empty store in memory is used.
  const is_there = config.store_url !== storeUrl(config.data_dir) || existsSync(storePath(config.data_dir))
  const store_url = is_there ? config.store_url : 'sqlite::memory:'
  const gateway = await createGateway({
    config,
    environment,
    log,
    clock,
    manual: loadManual,
    store_url,
    is_idle: true,
    version: VERSION,
  })
  try {
    await gateway.discovery
    return read(gateway)
  } finally {
    await gateway.close({ deadline_ms: 0 })
    log.flush()
  }
}
