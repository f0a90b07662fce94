/**
 * What operators follow while it happens: requests that ended and alerts of this process, and the audit log of all
 * processes. Costs nothing while nobody follows; a follower that reads too slowly loses events, and learns how many.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { AuditRow } from '../../spec/audit.ts'
import { GatewayError } from '../../spec/error.ts'
import type { AuditStore } from '../../store/admin/audit-store.ts'
import type { RaisedAlert } from '../alerts/alerts.ts'
import { requestRow } from './call-row.ts'
import { viewRow } from './request-view.ts'
import type { EndedRequest, Recorder } from './requests.ts'

export const LIVE_EVENT_TYPES = ['request', 'audit', 'alert'] as const
type LiveEventType = (typeof LIVE_EVENT_TYPES)[number]

export type LiveEvent = { type: LiveEventType | 'dropped'; at_ms: number; data: object }
/** `project_id`: only what belongs to this project. */
type LiveFilter = {
  types: readonly LiveEventType[]
  project_id?: string | undefined /** Who follows. */
  actor: string
}

export type LiveEvents = {
  record: Recorder
  alerted(alert: RaisedAlert): void
  /** From now on, until the signal is aborted or the gateway stops. Throws `server_is_overloaded` where too many follow already. */
  follow(filter: LiveFilter, signal: AbortSignal): AsyncGenerator<LiveEvent>
  /** Ends what all follow. */
  close(): void
}

type LiveEventsParts = {
  audit: Pick<AuditStore, 'page'>
  clock: Clock
  log: Log
}

export const MAX_FOLLOWERS = 32
/** Of these, by one administrator, and by all administrators of projects: nobody locks the others out. */
export const MAX_OF_ACTOR = 4
export const MAX_OF_PROJECTS = 16
/** Of one follower: some 2 MB. */
export const MAX_WAITING = 1_000
/** How soon a row of the audit log is sent. */
const AUDIT_MILLISECONDS = 1_000
const AUDIT_ROWS = 200
const MAX_ALERT_KEYS = 1_000

type Follower = { filter: LiveFilter; waiting: LiveEvent[]; dropped: number; isEnded: boolean; wake(): void }

export function createLiveEvents({ audit, clock, log }: LiveEventsParts): LiveEvents {
  const followers = new Set<Follower>()
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
  function publish(event: LiveEvent & { type: LiveEventType }, project_id: string | null): void {
    for (const follower of followers) {
      const { types, project_id: own } = follower.filter
      if (!types.includes(event.type) || (own !== undefined && own !== project_id)) continue
      if (follower.waiting.length < MAX_WAITING) follower.waiting.push(event)
      else follower.dropped++
      follower.wake()
    }
  }

  /** More was recorded at once than is read: nobody knows whose it is. */
  function lose(rows: number): void {
    for (const follower of followers) {
      if (follower.filter.types.includes('audit') && follower.filter.project_id === undefined) follower.dropped += rows
    }
  }

  function publishRequest(ended: EndedRequest, offset: number): void {
    const row = requestRow(ended, offset)
    // Without a known token and project, it is no caller's.
    if (row.token_id === '') return
    const { id: _, feedback: __, ...data } = viewRow(row)
    publish({ type: 'request', at_ms: ended.at + offset, data }, row.project_id)
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
        if (event) yield event
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
      if (followers.size === 0 || !isFollowed('request')) return
      each(ended, (one) => publishRequest(one, offset))
    },
    alerted({ key, again_seconds, type, message, data }) {
      if (followers.size === 0) return
      const now_ms = clock.now()
      if ((alerted.get(key) ?? 0) > now_ms) return
      if (alerted.size >= MAX_ALERT_KEYS) alerted.clear()
      alerted.set(key, now_ms + again_seconds * 1000)
      publish({ type: 'alert', at_ms: now_ms, data: { event: type, message, data } }, null)
    },
    follow(filter, signal) {
      assertPlace(filter)
      const follower: Follower = { filter, waiting: [], dropped: 0, isEnded: signal.aborted, wake() {} }
      if (!follower.isEnded) followers.add(follower)
      signal.addEventListener('abort', () => remove(follower), { once: true })
      // What was recorded before is not sent.
      if (filter.types.includes('audit') && sequence === undefined) void lookAtAudit()
      return eventsOf(follower)
    },
    close() {
      for (const follower of [...followers]) remove(follower)
    },
  }
}

/** The hashes are for the check of the chain. */
const shown = ({ previous_hash: _, hash: __, ...row }: AuditRow): object => row
