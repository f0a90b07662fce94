/**
 * Gives operators what happens while it does: requests that ended, alerts, tasks and the audit log, of all processes on the
 * store. Nothing is kept while nobody follows. Events of this process come from memory, those of others from the store. A
 * follower that reads too slowly loses events, and learns how many.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import type { AuditStore } from '../../store/admin/audit-store.ts'
import type { LiveStore } from '../../store/requests/live-store.ts'
import type { RaisedAlert } from '../alerts/alerts.ts'
import { createLiveAudit } from './live-audit.ts'
import { ASK_MILLISECONDS, createLiveFeed, type LiveFeed } from './live-feed.ts'
import {
  type Follower,
  give,
  giveRow,
  type LiveEvent,
  type LiveFilter,
  type LiveItem,
  lose,
  takeBatch,
} from './live-followers.ts'
import { createLiveRing } from './live-ring.ts'
import { requestRow } from './request-log.ts'
import { viewRow } from './request-view.ts'
import type { EndedRequest, Recorder } from './requests.ts'

/** Never its request, nor what it has made. */
export type LiveTask = Pick<
  Task,
  'task_id' | 'token_id' | 'project_id' | 'family' | 'model' | 'status' | 'progress' | 'provider' | 'fail_code'
>

export type LiveEvents = {
  record: Recorder
  alerted(alert: RaisedAlert): void
  /** A task has changed, as it is now. */
  taskChanged(task: LiveTask): void
  /**
   * Batches from now on, until the signal is aborted or the gateway stops. Throws `server_is_overloaded` where too many
   * follow already.
   */
  follow(filter: LiveFilter, signal: AbortSignal): AsyncGenerator<readonly LiveEvent[]>
  /** The revision of the tokens has changed: somebody may follow in another process. */
  revised(): void
  close(): void
  /** After `close`: what other processes are to read is stored. */
  closed(): Promise<void>
}

type LiveEventsParts = {
  process_id: string
  /** Absent: there is no other process. */
  store?: LiveStore
  audit: Pick<AuditStore, 'page'>
  clock: Clock
  log: Log
}

export const MAX_FOLLOWERS = 32
/** Of these, by one administrator, and by all administrators of projects: nobody locks the others out. */
export const MAX_OF_ACTOR = 4
export const MAX_OF_PROJECTS = 16
const MAX_ALERT_KEYS = 1_000
/** From one batch of a follower to its next: at 500 requests a second, one write of 100 costs less than 100 writes. */
export const BATCH_MILLISECONDS = 200
const STORED_ROWS = 1_000
/** Processes learn within a second that somebody follows, and then store what they have kept. */
const FORMER_MILLISECONDS = 4_000

export function createLiveEvents({ process_id, store, audit, clock, log }: LiveEventsParts): LiveEvents {
  const followers = new Set<Follower>()
  const ring = createLiveRing()
  const auditLog = createLiveAudit({ audit, followers, clock, log })
  const feed =
    store &&
    createLiveFeed({
      process_id,
      store,
      backlog: ring.since,
      onRows(rows) {
        for (const follower of followers) {
          for (const row of rows) if (row.sequence > (follower.sequence ?? Infinity)) giveRow(follower, row)
        }
      },
      clock,
      log,
    })
  /** Somebody who followed here comes back until then, in unix milliseconds. */
  let kept_until = 0
  /** Until when an alert of a key is not sent again, in unix milliseconds. */
  const alerted = new Map<string, number>()
  let closed: Promise<void> | undefined

  /** Whether an event is kept, for followers here or elsewhere. */
  function isKept(): boolean {
    if (followers.size > 0 || (kept_until > 0 && kept_until > clock.now()) || feed?.isFollowed()) return true
    ring.skip()
    return false
  }

  function publish(item: LiveItem): void {
    const event = ring.add(item)
    for (const follower of followers) give(follower, event)
    if (feed?.isFollowed()) feed.publish(event)
  }

  /** Rows of the store after the place of a follower that comes back, and events of this process that are not among them. */
  async function readRows(feed: LiveFeed, follower: Follower, started: { at: number; last: number }): Promise<void> {
    const { after } = follower.filter
    const written = feed.written()
    let first: number | undefined
    let at = after?.sequence ?? started.last
    for (let isMore = true; isMore; ) {
      const rows = await feed.since(at, STORED_ROWS)
      if (after && at === after.sequence && (rows[0]?.sequence ?? 0) > at + 1) lose(follower, clock.now())
      for (const row of rows) {
        giveRow(follower, row)
        if (row.process_id === process_id && !row.late) first ??= row.number ?? undefined
      }
      at = rows.at(-1)?.sequence ?? at
      isMore = rows.length === STORED_ROWS || at < feed.last()
      follower.sequence = isMore ? undefined : at
    }
    if (!after || after.process_id === process_id) return
    for (const event of ring.since(first === undefined ? written : first - 1).events) {
      if (event.number <= started.at) give(follower, event)
    }
  }

  /** What was kept in this process for who comes back to it. */
  function giveKept(follower: Follower, after: number): void {
    const { events, isGap } = ring.since(after)
    if (isGap) lose(follower, clock.now())
    for (const event of events) give(follower, event)
  }

  /** A process in which a follower was before does not report what it had kept. */
  function awaitFormer(follower: Follower): void {
    const cancel = clock.after(FORMER_MILLISECONDS, () => {
      if (!follower.hasReported) lose(follower, clock.now())
    })
    follower.stops.add(cancel)
  }

  /** What it missed in other processes. */
  async function readOthers(follower: Follower): Promise<void> {
    if (!feed) return
    const { after } = follower.filter
    const at = ring.last()
    const { last, isNew } = await feed.follow()
    follower.place.sequence = after?.sequence ?? last
    await readRows(feed, follower, { at, last })
    const isElsewhere = after !== undefined && after.process_id !== process_id
    if (isElsewhere && isNew && !follower.hasReported && !follower.isEnded) awaitFormer(follower)
  }

  async function begin(follower: Follower): Promise<void> {
    try {
      await Promise.all([readOthers(follower), auditLog.begin(follower)])
    } catch (error) {
      log.error('earlier live events could not be read', {}, error)
      lose(follower, clock.now())
    }
  }

  function publishRequest(ended: EndedRequest, offset: number): void {
    const row = requestRow(ended, offset)
    // Without a known token and project, it is no caller's.
    if (row.token_id === '') return
    const data = () => {
      const { id: _, feedback: __, ...view } = viewRow(row)
      return view
    }
    publish({ type: 'request', at_ms: Math.round(ended.at + offset), project_id: row.project_id, data })
  }

  function remove(follower: Follower): void {
    if (follower.isEnded) return
    follower.isEnded = true
    follower.wake()
    for (const stop of follower.stops) stop()
    followers.delete(follower)
    kept_until = clock.now() + ASK_MILLISECONDS
    if (followers.size === 0) feed?.leave()
    auditLog.left()
  }

  /** Throws server_is_overloaded. */
  function assertPlace({ actor, project_id }: LiveFilter): void {
    const filters = [...followers].map(({ filter }) => filter)
    const shares: [number, number, string][] = [
      [filters.length, MAX_FOLLOWERS, 'streams of live events are open at once'],
      [filters.filter((one) => one.actor === actor).length, MAX_OF_ACTOR, 'of them by one administrator'],
    ]
    if (project_id !== undefined) {
      const ofProjects = filters.filter((one) => one.project_id !== undefined).length
      shares.push([ofProjects, MAX_OF_PROJECTS, 'of them by administrators of projects'])
    }
    const full = shares.find(([open, most]) => open >= most)
    if (full) throw new GatewayError('server_is_overloaded', `At most ${full[1]} ${full[2]}.`)
  }

  async function* batchesOf(follower: Follower): AsyncGenerator<readonly LiveEvent[]> {
    try {
      while (!follower.isEnded) {
        if (follower.waiting.length > 0 || follower.dropped > 0) {
          yield takeBatch(follower, clock.now())
          await pause(follower)
        } else {
          const woken = Promise.withResolvers<void>()
          follower.wake = woken.resolve
          await woken.promise
        }
      }
    } finally {
      remove(follower)
    }
  }

  function pause(follower: Follower): Promise<void> {
    return new Promise((resolve) => {
      if (follower.isEnded) return resolve()
      const cancel = clock.after(BATCH_MILLISECONDS, () => {
        follower.stops.delete(stop)
        resolve()
      })
      const stop = () => {
        cancel()
        resolve()
      }
      follower.stops.add(stop)
    })
  }

  return {
    record(ended, { offset, each }) {
      if (isKept()) each(ended, (one) => publishRequest(one, offset))
    },
    alerted({ key, again_seconds, type, message, data }) {
      if (!isKept()) return
      const now_ms = clock.now()
      if ((alerted.get(key) ?? 0) > now_ms) return
      if (alerted.size >= MAX_ALERT_KEYS) alerted.clear()
      alerted.set(key, now_ms + again_seconds * 1000)
      publish({ type: 'alert', at_ms: now_ms, project_id: null, data: () => ({ event: type, message, data }) })
    },
    taskChanged(task) {
      if (isKept()) publish({ type: 'task', at_ms: clock.now(), project_id: task.project_id, data: () => task })
    },
    follow(filter, signal) {
      assertPlace(filter)
      const { after } = filter
      ring.begin()
      const follower: Follower = {
        filter,
        waiting: [],
        dropped: 0,
        isEnded: false,
        place: { sequence: after?.sequence ?? 0, audit: after?.audit ?? 0, process_id, number: ring.last() },
        sequence: undefined,
        audit: 0,
        hasReported: false,
        stops: new Set(),
        wake() {},
      }
      if (signal.aborted) follower.isEnded = true
      else {
        if (after?.process_id === process_id) giveKept(follower, after.number)
        followers.add(follower)
        void begin(follower)
        signal.addEventListener('abort', () => remove(follower), { once: true })
      }
      return batchesOf(follower)
    },
    revised: () => feed?.revised(),
    close() {
      const isKept = followers.size > 0 || kept_until > clock.now()
      for (const follower of [...followers]) remove(follower)
      closed = feed?.close({ isKept })
    },
    closed: async () => closed,
  }
}
