/** Applies a changed configuration to a running gateway, or keeps the last good one and logs why. */
import { watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { ConfigError, problemText } from '../check/problem.ts'
import type { Config } from '../config.ts'
import { changesBetween } from '../edit/config-diff.ts'
import { isOpenForWriting } from '../edit/open-for-writing.ts'
import { emptiedSections, removesSome } from '../edit/removals.ts'
import { type FileState, factsOf, fileState, isBlank, isReplaced } from './file-state.ts'
import type { SecretFiles } from './secret-files.ts'

type WatchParts = {
  /** The file to watch, absolute. It need not exist yet. */
  path: string
  current: Config
  /** Reads the file by `readFile`, so that the loaded text is the inspected one. Throws ConfigError. */
  load(readFile: () => string | undefined): Config
  /** Applies it atomically; rejects and changes nothing on failure. */
  apply(config: Config): Promise<void>
  /** The files that `load` has read for the configuration; a change of one is applied like one of the file. */
  secrets?: Pick<SecretFiles, 'mark' | 'readMark'>
  log: Log
  clock: Clock
  /** Calls back on every event in a directory; the result stops watching. */
  watchDirectory?: (directory: string, onEvent: () => void) => () => void
  isOpen?: (path: string) => Promise<boolean>
}

export type ConfigWatch = {
  /** Applies the file as it is, changed or not (for SIGHUP). False when the last good configuration remains. */
  reload(): Promise<boolean>
  close(): void
}

/** `inspect_at_ms`: when it is inspected next. */
type Pending = { state: FileState; since_ms: number; inspect_at_ms: number; is_logged?: true }

/** Groups events; also the wait before a file that was replaced by a rename is read. */
const SETTLE_MILLISECONDS = 100
/** How long a file that is written in place must be unchanged. */
const QUIET_MILLISECONDS = 1_000
/** The same for a file that lacks settings in force: it may be the first part of an unfinished write. */
const LONG_QUIET_MILLISECONDS = 5_000
/** A process that keeps the file open for longer without writing is ignored. */
const MAX_OPEN_MILLISECONDS = 60_000
/** The polling interval, for changes without file events (network drives, swapped links of mounted volumes). */
const POLL_MILLISECONDS = 2_000

export function watchConfig(parts: WatchParts): ConfigWatch {
  const { path, load, apply, secrets, log, clock, watchDirectory = watchWithEvents, isOpen = isOpenForWriting } = parts
  let current = parts.current
  /** `in_force`: what `current` was loaded from; `judged`: the last one that was inspected, whatever the result. */
  let in_force = fileState(path)
  let judged = in_force
  /** A change that is not applied yet, and since when it has been like this. */
  let pending: Pending | undefined
  /** Secret files that have changed and are not read yet. */
  let changed_secrets: { mark: string; since_ms: number } | undefined
  let mark = in_force.mark
  let queue: Promise<unknown> = Promise.resolve()
  let closed = false
  let next_inspection: { at_ms: number; cancel(): void } | undefined

  /** Runs one inspection at a time. */
  function serialize<T>(work: () => Promise<T>): Promise<T> {
    const result = queue.then(work)
    queue = result.catch(() => {})
    return result
  }

  /** The earliest time wins: constant events in the directory must not postpone an inspection forever. */
  function inspectAt(at_ms: number): void {
    if (next_inspection && next_inspection.at_ms <= at_ms) return
    next_inspection?.cancel()
    const cancel = clock.after(at_ms - clock.steady(), () => {
      next_inspection = undefined
      void serialize(inspect)
    })
    next_inspection = { at_ms, cancel }
  }

  /** Applies the file when it has changed and is quiet; otherwise schedules the next inspection. */
  async function inspect(): Promise<void> {
    if (closed) return
    const state = fileState(path)
    mark = state.mark
    if (state.text === judged.text) {
      pending = undefined
      return inspectSecrets()
    }
    const now_ms = clock.steady()
    if (pending?.state.mark !== state.mark || pending.state.text !== state.text) {
      const is_whole = state.text === undefined || isReplaced(in_force, state)
      pending = { state, since_ms: now_ms, inspect_at_ms: now_ms + (is_whole ? 0 : QUIET_MILLISECONDS) }
    }
    if (now_ms >= pending.inspect_at_ms) pending.inspect_at_ms += await waitFor(pending)
    if (closed) return
    if (pending.inspect_at_ms > now_ms) return inspectAt(pending.inspect_at_ms)
    pending = undefined
    judged = state
    await applyState(state, { is_forced: false })
  }

  /** Secret files may be written in place: they are read once none of them has changed for a moment. */
  async function inspectSecrets(): Promise<void> {
    const now_mark = secrets?.mark()
    if (now_mark === undefined || now_mark === secrets?.readMark()) {
      changed_secrets = undefined
      return
    }
    const now_ms = clock.steady()
    if (changed_secrets?.mark !== now_mark) changed_secrets = { mark: now_mark, since_ms: now_ms }
    const read_at_ms = changed_secrets.since_ms + QUIET_MILLISECONDS
    if (now_ms < read_at_ms) return inspectAt(read_at_ms)
    changed_secrets = undefined
    await applyState(judged, { is_forced: false })
  }

  /** How much longer to wait, in milliseconds; 0: apply now. */
  async function waitFor(change: Pending): Promise<number> {
    const { state, since_ms } = change
    const quiet_ms = clock.steady() - since_ms
    if (state.text === undefined || isReplaced(in_force, state)) return 0
    const is_open = quiet_ms < MAX_OPEN_MILLISECONDS && (await isOpen(path))
    const left_ms = is_open ? QUIET_MILLISECONDS : LONG_QUIET_MILLISECONDS - quiet_ms
    if (!is_open && (left_ms <= 0 || !removesSettings(state))) return 0
    if (!change.is_logged) {
      const why = is_open ? 'it is open for writing' : 'it lacks settings that are in force'
      log.info('configuration change waits', { file: path, why, force: FORCE })
      change.is_logged = true
    }
    return left_ms
  }

  /** An invalid file removes nothing: it is inspected and rejected at once. */
  function removesSettings(state: FileState): boolean {
    if ((state.text ?? '').length < (in_force.text ?? '').length) return true
    try {
      return removesSome(current, load(state.read))
    } catch {
      return false
    }
  }

  async function applyState(state: FileState, { is_forced }: { is_forced: boolean }): Promise<boolean> {
    if (current.file !== undefined && state.text === undefined) {
      log.warn('configuration file missing', { file: path, kept: LAST_GOOD })
      return false
    }
    try {
      const next = load(state.read)
      const reason = is_forced ? undefined : reasonToHold(state, next)
      if (reason !== undefined) {
        log.warn('configuration not applied', { file: path, why: reason, kept: LAST_GOOD, force: FORCE })
        return false
      }
      const { text: changed, needs_restart } = changesBetween(current, next)
      if (changed !== '') await apply(next)
      current = next
      in_force = state
      log.info(changed === '' ? 'configuration unchanged' : 'configuration applied', { changed })
      if (needs_restart.length > 0) log.warn('restart needed', { settings: needs_restart.join(', ') })
      return true
    } catch (error) {
      refuse(error)
      return false
    }
  }

  /** Why a valid file is not applied automatically: an empty file or section is more often an accident than intended. */
  function reasonToHold({ text }: FileState, next: Config): string | undefined {
    if (isBlank(text ?? ''))
      return isBlank(in_force.text ?? '') && in_force.text !== undefined ? undefined : 'it is empty'
    const emptied = emptiedSections(current, next)
    return emptied.length > 0 ? `it has no ${emptied.join(' and no ')} any more` : undefined
  }

  /** Logs each problem on its own line, then the result. */
  function refuse(error: unknown): void {
    const problems = error instanceof ConfigError ? error.problems.map(problemText) : [(error as Error).message]
    for (const problem of problems) log.error('configuration problem', { problem })
    log.warn('configuration not applied', { file: path, problems: problems.length, kept: LAST_GOOD })
  }

  const stopEvents = watchDirectory(dirname(path), () => inspectAt(clock.steady() + SETTLE_MILLISECONDS))

  let stopPolling = pollLater()
  function pollLater(): () => void {
    return clock.after(POLL_MILLISECONDS, () => {
      if (factsOf(path).mark !== mark || secrets?.mark() !== secrets?.readMark()) void serialize(inspect)
      stopPolling = pollLater()
    })
  }

  return {
    reload: () =>
      serialize(() => {
        pending = undefined
        judged = fileState(path)
        mark = judged.mark
        return applyState(judged, { is_forced: true })
      }),
    close() {
      closed = true
      next_inspection?.cancel()
      stopPolling()
      stopEvents()
    },
  }
}

const LAST_GOOD = 'the last good one'
const FORCE = 'send SIGHUP to apply it as it is'

/** Watches the whole directory, because editors and volume mounts replace the file. */
function watchWithEvents(directory: string, onEvent: () => void): () => void {
  try {
    const watcher = watch(directory, { persistent: false }, onEvent)
    // Without events (no watches left, directory removed) polling continues.
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => {}
  }
}
