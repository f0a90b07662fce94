/** Applies a changed configuration to a running gateway, or keeps the last good one and says why. */
import { watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { changesBetween } from './changes.ts'
import type { Config } from './config.ts'
import { type FileState, factsOf, fileState, isBlank, isReplaced } from './file-state.ts'
import { isOpenForWriting } from './open-for-writing.ts'
import { ConfigError, problemText } from './problem.ts'
import { emptiedSections, removesSome } from './removals.ts'

type WatchParts = {
  /** The file to watch, absolute. It need not exist yet. */
  path: string
  /** The configuration in force. */
  current: Config
  /** Reads the file by `readFile`, so that what is loaded is what was looked at. Throws ConfigError. */
  load(readFile: () => string | undefined): Config
  /** Puts it in place in one step; rejects, and changes nothing, if it cannot. */
  apply(config: Config): Promise<void>
  log: Log
  clock: Clock
  /** Calls back when something happens in a directory; the result ends that. */
  watchDirectory?: (directory: string, onEvent: () => void) => () => void
  /** Whether some process has the file open for writing. */
  isOpen?: (path: string) => Promise<boolean>
}

export type ConfigWatch = {
  /** Takes the file as it is, changed or not (for SIGHUP). False when the last good configuration stayed. */
  reload(): Promise<boolean>
  close(): void
}

/** `look_ms`: when it is to be judged next. */
type Pending = { state: FileState; since_ms: number; look_ms: number; is_told?: true }

/** Several events are taken as one; so long a file that was put in place by a rename is left alone. */
const SETTLE_MILLISECONDS = 100
/** A file that is written in place has to be as it is for so long. */
const QUIET_MILLISECONDS = 1_000
/** The same of one that lacks what is in force: it may be the first part of what is still to be written. */
const LONG_QUIET_MILLISECONDS = 5_000
/** A process that keeps the file open for writing for longer, and does not write, is not waited for. */
const HELD_MILLISECONDS = 60_000
/** What file events miss (network drives, a mounted volume's swapped links) is seen this late. */
const POLL_MILLISECONDS = 2_000

export function watchConfig(parts: WatchParts): ConfigWatch {
  const { path, load, apply, log, clock, watchDirectory = watchWithEvents, isOpen = isOpenForWriting } = parts
  let current = parts.current
  /** What `current` was loaded from, and the last one that was judged, whatever came of it. */
  let in_force = fileState(path)
  let judged = in_force
  /** A change that is waited for, since it was first seen like this. */
  let pending: Pending | undefined
  let mark = in_force.mark
  let turn: Promise<unknown> = Promise.resolve()
  let closed = false
  let next_look: { at_ms: number; cancel(): void } | undefined

  /** One reading at a time. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work)
    turn = mine.catch(() => {})
    return mine
  }

  /** The earliest wish counts: a directory in which something is always written must not put a look off for ever. */
  function lookAt(at_ms: number): void {
    if (next_look && next_look.at_ms <= at_ms) return
    next_look?.cancel()
    const cancel = clock.after(at_ms - clock.now(), () => {
      next_look = undefined
      void inTurn(look)
    })
    next_look = { at_ms, cancel }
  }

  /** Takes the file when it has changed and is quiet; otherwise looks again when it may be. */
  async function look(): Promise<void> {
    if (closed) return
    const state = fileState(path)
    mark = state.mark
    if (state.text === judged.text) {
      pending = undefined
      return
    }
    const now_ms = clock.now()
    if (pending?.state.mark !== state.mark || pending.state.text !== state.text) {
      const is_whole = state.text === undefined || isReplaced(in_force, state)
      pending = { state, since_ms: now_ms, look_ms: now_ms + (is_whole ? 0 : QUIET_MILLISECONDS) }
    }
    if (now_ms >= pending.look_ms) pending.look_ms += await waitFor(pending)
    if (closed) return
    if (pending.look_ms > now_ms) return lookAt(pending.look_ms)
    pending = undefined
    judged = state
    await take(state, { is_forced: false })
  }

  /** How much longer, in milliseconds; 0: it may be taken now. */
  async function waitFor(change: Pending): Promise<number> {
    const { state, since_ms } = change
    const quiet_ms = clock.now() - since_ms
    if (state.text === undefined || isReplaced(in_force, state)) return 0
    const is_held = quiet_ms < HELD_MILLISECONDS && (await isOpen(path))
    const left_ms = is_held ? QUIET_MILLISECONDS : LONG_QUIET_MILLISECONDS - quiet_ms
    if (!is_held && (left_ms <= 0 || !isLess(state))) return 0
    if (!change.is_told) {
      const why = is_held ? 'it is open for writing' : 'it lacks something that is in force'
      log.info('configuration change waits', { file: path, why, force: FORCE })
      change.is_told = true
    }
    return left_ms
  }

  /** What lacks nothing adds something; what is no configuration is judged, and refused, at once. */
  function isLess(state: FileState): boolean {
    if ((state.text ?? '').length < (in_force.text ?? '').length) return true
    try {
      return removesSome(current, load(state.read))
    } catch {
      return false
    }
  }

  async function take(state: FileState, { is_forced }: { is_forced: boolean }): Promise<boolean> {
    if (current.file !== undefined && state.text === undefined) {
      log.warn('configuration file gone', { file: path, kept: 'the last good one' })
      return false
    }
    try {
      const next = load(state.read)
      const doubt = is_forced ? undefined : doubtOf(state, next)
      if (doubt !== undefined) {
        log.warn('configuration not applied', { file: path, why: doubt, kept: KEPT, force: FORCE })
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

  /** Why a valid file is not taken by itself: it is much more often an accident than a wish. */
  function doubtOf({ text }: FileState, next: Config): string | undefined {
    if (isBlank(text ?? ''))
      return isBlank(in_force.text ?? '') && in_force.text !== undefined ? undefined : 'it is empty'
    const emptied = emptiedSections(current, next)
    return emptied.length > 0 ? `it has no ${emptied.join(' and no ')} any more` : undefined
  }

  /** Every problem in its own line, then what follows from them. */
  function refuse(error: unknown): void {
    const problems = error instanceof ConfigError ? error.problems.map(problemText) : [(error as Error).message]
    for (const problem of problems) log.error('configuration problem', { problem })
    log.warn('configuration not applied', { file: path, problems: problems.length, kept: KEPT })
  }

  const stopEvents = watchDirectory(dirname(path), () => lookAt(clock.now() + SETTLE_MILLISECONDS))

  let stopPolling = pollLater()
  function pollLater(): () => void {
    return clock.after(POLL_MILLISECONDS, () => {
      if (factsOf(path).mark !== mark) void inTurn(look)
      stopPolling = pollLater()
    })
  }

  return {
    reload: () =>
      inTurn(() => {
        pending = undefined
        judged = fileState(path)
        mark = judged.mark
        return take(judged, { is_forced: true })
      }),
    close() {
      closed = true
      next_look?.cancel()
      stopPolling()
      stopEvents()
    },
  }
}

const KEPT = 'the last good one'
const FORCE = 'send SIGHUP to take it as it is'

/** The whole directory is watched, since editors and volume mounts put a new file in the place of the old. */
function watchWithEvents(directory: string, onEvent: () => void): () => void {
  try {
    const watcher = watch(directory, { persistent: false }, onEvent)
    // Without events (no watches left, directory gone) the polling goes on.
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => {}
  }
}
