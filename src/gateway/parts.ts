/** Types of the parts that a gateway is created of. */
import type { Config } from '../config/config.ts'
import type { BatchCrashPoint, CrashPoint } from '../families/tasks/crash-points.ts'
import type { Build } from '../kit/build-info.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { ManualFile } from '../site/manual/load-manual.ts'
import type { Siblings } from './metering.ts'

export type GatewayParts = {
  config: Config
  /** The process environment, for upstream keys. */
  environment: Record<string, string | undefined>
  log: Log
  clock?: Clock
  /** The store's URL; default: a file in `config.data_dir`. */
  store_url?: string
  /** The pages of the manual: served to browsers, and the source of the sandbox's answers. */
  manual?: () => Promise<ManualFile[]>
  version: string
  /** The commit that this gateway is built from, where that is known. */
  build?: Build | undefined
  /** The other processes of this gateway; absent: there are none. */
  siblings?: Siblings | undefined
  /** Starts no background work: for commands that only read. */
  is_idle?: true
  /** Crash-injection hook, used by tests only. */
  crashHook?: (point: CrashPoint | BatchCrashPoint) => void
}
