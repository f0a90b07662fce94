/**
 * What operators follow while it happens: requests that ended, alerts, and the audit log, of all processes on the store.
 * Costs nothing while nobody follows; a follower that reads too slowly loses events, and learns how many.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { AuditRow } from '../../spec/audit.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import type { AuditStore } from '../../store/admin/audit-store.ts'
import type { LiveRow, LiveStore } from '../../store/requests/live-store.ts'
import type { RaisedAlert } from '../alerts/alerts.ts'
import { createLiveFeed } from './live-feed.ts'
import {
  auditOf,
  drop,
  eventOf,
  type Follower,
  GAP,
  give,
  isFor,
  type LiveEvent,
  type LiveEventType,
  type LiveFilter,
  type LivePlace,
  MAX_WAITING,
  type Published,
  withId,
} from './live-followers.ts'
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
  /** From now on, until the signal is aborted or the gateway stops. Throws `server_is_overloaded` where too many follow already. */
  follow(filter: LiveFilter, signal: AbortSignal): AsyncGenerator<LiveEvent>
  /** The revision of the tokens has changed: somebody may follow in another process. */
  revised(): void
  /** Ends what all follow. */
  close(): void
}

type LiveEventsParts = {
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
/** How soon a row of the audit log is sent. */
const AUDIT_MILLISECONDS = 1_000
const AUDIT_ROWS = 200
const MAX_ALERT_KEYS = 1_000

export function createLiveEvents({ store, audit, clock, log }: LiveEventsParts): LiveEvents {
  const followers = new Set<Follower>()
  const feed = store && createLiveFeed({ store, onRows: publishRows, clock, log })
  /** Until when an alert of a key is not sent again, in unix milliseconds. */
  const alerted = new Map<string, number>()
  /** The last row of the audit log that was sent. */
  let sequence: number | undefined
  let cancelLook = () => {}

  const isFollowed = (type: LiveEventType): boolean => {
    for (const { filter } of followers) if (filter.types.includes(type)) return true
    return false
  }

  /** `project_id` null: it belongs to the installation, and only those who may see all get it. */
  function publish(event: Published, project_id: string | null): void {
    for (const follower of followers) {
      if (!isFor(follower, event, project_id)) continue
      if (follower.later && follower.later.length < MAX_WAITING) follower.later.push(event)
      else if (follower.later) follower.dropped++
      else give(follower, event)
    }
  }

  /** By the feed where there is one: then it comes back as a row. */
  function send(event: Published, project_id: string | null): void {
    const { type, at_ms, data } = event
    if (feed) feed.publish({ type, at_ms, project_id, text: JSON.stringify(data) })
    else publish(event, project_id)
  }

  function publishRows(rows: readonly LiveRow[], dropped: number): void {
    for (const row of rows) if (row.type !== GAP) publish(eventOf(row), row.project_id)
    if (dropped > 0) for (const follower of followers) drop(follower, dropped)
  }

  /** What is stored after the place of a follower that comes back. */
  async function catchUp(follower: Follower, after: LivePlace | undefined): Promise<void> {
    const last = feed ? await feed.follow() : 0
    if (after && feed) {
      const rows = await feed.since(after.sequence, MAX_WAITING)
      const isGap =
        rows.some(({ type }) => type === GAP) || (rows[0]?.sequence ?? after.sequence + 1) > after.sequence + 1
      if (isGap) follower.waiting.push({ type: 'dropped', at_ms: clock.now(), data: { events: null } } as never)
      for (const row of rows) {
        if (row.type !== GAP && isFor(follower, eventOf(row), row.project_id)) give(follower, eventOf(row))
      }
      follower.place.sequence = rows.at(-1)?.sequence ?? after.sequence
    } else follower.place.sequence = last
    if (after && after.audit > 0 && follower.filter.types.includes('audit')) {
      const { rows } = await audit.page({ limit: AUDIT_ROWS })
      for (const row of rows.toReversed()) {
        const event: Published = { type: 'audit', at_ms: row.at_ms, data: shown(row) }
        if (row.sequence > after.audit && isFor(follower, event, row.project_id)) give(follower, event)
      }
      follower.place.audit = Math.max(after.audit, rows[0]?.sequence ?? 0)
    }
  }

  /** More was recorded at once than is read: nobody knows whose it is. */
  function lose(rows: number): void {
    for (const follower of followers) {
      if (follower.filter.types.includes('audit') && follower.filter.project_id === undefined) follower.dropped += rows
    }
  }

  async function begin(follower: Follower, after: LivePlace | undefined): Promise<void> {
    await catchUp(follower, after).catch((error: unknown) =>
      log.error('earlier live events could not be read', {}, error),
    )
    const later = follower.later ?? []
    follower.later = undefined
    for (const event of later) {
      const isKnown =
        event.type === 'audit'
          ? auditOf(event) <= follower.place.audit
          : (event.sequence ?? 0) <= follower.place.sequence
      if (!isKnown) give(follower, event)
    }
    follower.wake()
  }

  function publishRequest(ended: EndedRequest, offset: number): void {
    const row = requestRow(ended, offset)
    // Without a known token and project, it is no caller's.
    if (row.token_id === '') return
    const { id: _, feedback: __, ...data } = viewRow(row)
    send({ type: 'request', at_ms: Math.round(ended.at + offset), data }, row.project_id)
  }

  async function lookAtAudit(): Promise<void> {
    try {
      const { rows } = await audit.page({ limit: sequence === undefined ? 1 : AUDIT_ROWS })
      const known = sequence ?? rows[0]?.sequence ?? 0
      const news = rows.filter((row) => row.sequence > known).toReversed()
      const missed = news.length === 0 ? 0 : (news[0]?.sequence ?? 0) - known - 1
      if (missed > 0) lose(missed)
      for (const row of news) publish({ type: 'audit', at_ms: row.at_ms, data: shown(row) }, row.project_id)
      sequence = Math.max(known, news.at(-1)?.sequence ?? 0)
    } catch (error) {
      log.error('live events could not read the audit log', {}, error)
    }
    if (isFollowed('audit')) watchAudit()
    else sequence = undefined
  }

  function watchAudit(): void {
    cancelLook()
    cancelLook = clock.after(AUDIT_MILLISECONDS, () => void lookAtAudit())
  }

  function remove(follower: Follower): void {
    follower.isEnded = true
    follower.wake()
    followers.delete(follower)
    if (followers.size === 0) feed?.leave()
    if (isFollowed('audit')) return
    cancelLook()
    sequence = undefined
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

  async function* eventsOf(follower: Follower): AsyncGenerator<LiveEvent> {
    try {
      while (!follower.isEnded) {
        const event = follower.waiting.shift()
        if (event) yield withId(follower, event)
        else if (follower.dropped > 0) {
          const { dropped } = follower
          follower.dropped = 0
          yield { type: 'dropped', at_ms: clock.now(), data: { events: dropped } }
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

  return {
    record(ended, { offset, each }) {
      if (feed ? !feed.isFollowed() : !isFollowed('request')) return
      each(ended, (one) => publishRequest(one, offset))
    },
    alerted({ key, again_seconds, type, message, data }) {
      if (feed ? !feed.isFollowed() : followers.size === 0) return
      const now_ms = clock.now()
      if ((alerted.get(key) ?? 0) > now_ms) return
      if (alerted.size >= MAX_ALERT_KEYS) alerted.clear()
      alerted.set(key, now_ms + again_seconds * 1000)
      send({ type: 'alert', at_ms: now_ms, data: { event: type, message, data } }, null)
    },
    taskChanged({ project_id, ...task }) {
      if (feed ? !feed.isFollowed() : !isFollowed('task')) return
      send({ type: 'task', at_ms: clock.now(), data: { ...task, project_id } }, project_id)
    },
    follow(filter, signal) {
      assertPlace(filter)
      const follower: Follower = {
        filter,
        waiting: [],
        dropped: 0,
        isEnded: signal.aborted,
        place: { sequence: 0, audit: filter.after?.audit ?? 0 },
        later: feed && [],
        wake() {},
      }
      if (!follower.isEnded) followers.add(follower)
      if (feed) void begin(follower, filter.after)
      signal.addEventListener('abort', () => remove(follower), { once: true })
      // What was recorded before is not sent.
      if (filter.types.includes('audit') && sequence === undefined) void lookAtAudit()
      return eventsOf(follower)
    },
    revised: () => feed?.revised(),
    close() {
      for (const follower of [...followers]) remove(follower)
      feed?.close()
    },
  }
}

/** The hashes are for the check of the chain. */
const shown = ({ previous_hash: _, hash: __, ...row }: AuditRow): object => row
