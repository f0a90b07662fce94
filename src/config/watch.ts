/** Applies a changed configuration to a running gateway, or keeps the last good one and says why. */
import { statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { changesBetween } from './changes.ts'
import type { Config } from './config.ts'
import { readTextFile } from './load.ts'
import { ConfigError, problemText } from './problem.ts'

type WatchParts = {
  /** The file to watch, absolute. It need not exist yet. */
  path: string
  /** The configuration in force. */
  current: Config
  /** Throws ConfigError. */
  load(): Config
  /** Puts it in place in one step; rejects, and changes nothing, if it cannot. */
  apply(config: Config): Promise<void>
  log: Log
  clock: Clock
  /** Calls back when something happens in a directory; the result ends that. */
  watchDirectory?: (directory: string, onEvent: () => void) => () => void
}

export type ConfigWatch = {
  /** Reads the file again, changed or not (for SIGHUP). False when the last good configuration stayed. */
  reload(): Promise<boolean>
  close(): void
}

/** An editor writes a file in several steps; they are taken as one. */
const SETTLE_MILLISECONDS = 100
/** What file events miss (network drives, a mounted volume's swapped links) is seen this late. */
const POLL_MILLISECONDS = 2000

export function watchConfig(parts: WatchParts): ConfigWatch {
  const { path, load, apply, log, clock, watchDirectory = watchWithEvents } = parts
  let current = parts.current
  let text = readText(path)
  let mark = ''
  let turn: Promise<unknown> = Promise.resolve()
  let closed = false

  /** One reading at a time. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work)
    turn = mine
    return mine
  }

  async function takeIfChanged(): Promise<void> {
    const now = readText(path)
    if (closed || now === text) return
    text = now
    await take()
  }

  async function take(): Promise<boolean> {
    if (current.file !== undefined && readText(path) === undefined) {
      log.warn('configuration file gone', { file: path, kept: 'the last good one' })
      return false
    }
    try {
      const next = load()
      const { text: changed, needs_restart } = changesBetween(current, next)
      if (changed !== '') await apply(next)
      current = next
      log.info(changed === '' ? 'configuration unchanged' : 'configuration applied', { changed })
      if (needs_restart.length > 0) log.warn('restart needed', { settings: needs_restart.join(', ') })
      return true
    } catch (error) {
      refuse(error)
      return false
    }
  }

  /** Every problem in its own line, then what follows from them. */
  function refuse(error: unknown): void {
    const problems = error instanceof ConfigError ? error.problems.map(problemText) : [(error as Error).message]
    for (const problem of problems) log.error('configuration problem', { problem })
    log.warn('configuration not applied', { file: path, problems: problems.length, kept: 'the last good one' })
  }

  let settling: (() => void) | undefined
  const stopEvents = watchDirectory(dirname(path), () => {
    settling?.()
    settling = clock.after(SETTLE_MILLISECONDS, () => void inTurn(takeIfChanged))
  })

  let stopPolling = pollLater()
  function pollLater(): () => void {
    return clock.after(POLL_MILLISECONDS, () => {
      const seen = markOf(path)
      if (seen !== mark) void inTurn(takeIfChanged)
      mark = seen
      stopPolling = pollLater()
    })
  }

  return {
    reload: () =>
      inTurn(() => {
        text = readText(path)
        return take()
      }),
    close() {
      closed = true
      settling?.()
      stopPolling()
      stopEvents()
    },
  }
}

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

/** Undefined when there is none; what cannot be read counts as empty, and loading it says why. */
function readText(path: string): string | undefined {
  try {
    return readTextFile(path)
  } catch {
    return ''
  }
}

/** Differs whenever the file, or the file behind its links, may differ. */
function markOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true })
    return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ')
  } catch {
    return 'none'
  }
}
