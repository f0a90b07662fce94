/** Records the configurations that were in force, with masks for what may be a secret. */
import { readTextFile } from '../config/load/load.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { orderedAlphanumerics, sha256 } from '../kit/secret.ts'
import type { ConfigVersionStore } from '../store/admin/config-version-store.ts'

export type ConfigHistory = {
  /** The file as it is now, unless that is the last one. Never rejects: it is not a reason to refuse a configuration. */
  record(by: { actor: string; changes: object[] }): Promise<void>
}

type HistoryParts = {
  store: Pick<ConfigVersionStore, 'isLast' | 'add'>
  /** Undefined: the gateway runs without a file. */
  file: string | undefined
  clock: Clock
  log: Log
}

/** Loaded when a text is masked, so that a start does not load the parser of YAML. */
export const masking = () => require('../config/edit/masked-text.ts') as typeof import('../config/edit/masked-text.ts')

/** As much as the admin API accepts. */
export const MAX_TEXT = 262_144

export const versionOf = (text: string | undefined): string => (text === undefined ? '' : sha256(text))

/** The text of the file for an editor; `text` undefined: there is no file, or it is not YAML. */
export function presentText(file: string) {
  const text = readTextFile(file)
  const masked = text === undefined || text.length > MAX_TEXT ? undefined : masking().maskText(text)
  return { version: versionOf(text), text: masked?.text, masked }
}

export function createConfigHistory({ store, file, clock, log }: HistoryParts): ConfigHistory {
  return {
    async record({ actor, changes }) {
      try {
        const text = file === undefined ? undefined : readTextFile(file)
        if (file === undefined || text === undefined || text.length > MAX_TEXT) return
        const hash = sha256(text)
        // Most starts: nothing is masked, nothing written.
        if (await store.isLast({ file, hash })) return
        const masked = masking().maskText(text)
        if (!masked) return
        const at_ms = clock.now()
        const version_id = `cfg_${orderedAlphanumerics(at_ms, 24)}`
        await store.add({ version_id, at_ms, actor, file, hash, text: masked.text, changes })
      } catch (error) {
        log.error('a configuration is not in the history', {}, error)
      }
    },
  }
}
