/** Alerts where a guard blocks much: a misconfigured one, or somebody who tries. */
import type { AlertsConfig } from '../../config/schema/alerts-schema.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Alerts } from './alerts.ts'

type Parts = { alerts: Pick<Alerts, 'raise'>; settings(): AlertsConfig; clock: Clock }

const DEFAULT_BLOCKS_PER_MINUTE = 30
/** More names come only of guards that were renamed. */
const MAX_NAMES = 1_000

/** Called with the name of a guard each time that it blocks. */
export function createGuardBlocks({ alerts, settings, clock }: Parts): (guard: string) => void {
  const counts = new Map<string, { minute: number; blocks: number }>()
  return (guard) => {
    const minute = Math.floor(unixSeconds(clock) / 60)
    const before = counts.get(guard)
    const blocks = before?.minute === minute ? before.blocks + 1 : 1
    if (counts.size >= MAX_NAMES) counts.clear()
    counts.set(guard, { minute, blocks })
    if (blocks !== (settings().guard_blocks_per_minute ?? DEFAULT_BLOCKS_PER_MINUTE)) return
    alerts.raise({
      type: 'guard.blocking',
      key: `guard.blocking ${guard}`,
      again_seconds: 3_600,
      message: `The guard ${guard} has blocked ${blocks} requests or answers within a minute.`,
      data: { guard, blocks },
    })
  }
}
