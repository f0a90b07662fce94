/** Those who follow live events: what each of them gets, and how far it has read. */
import type { LiveRow } from '../../store/requests/live-store.ts'

export const LIVE_EVENT_TYPES = ['request', 'audit', 'alert', 'task'] as const
export type LiveEventType = (typeof LIVE_EVENT_TYPES)[number]

/** `id`: of a follower that comes back after this event. `data` of `dropped`: `events` null where nobody knows how many. */
export type LiveEvent = { type: LiveEventType | 'dropped'; at_ms: number; data: object; id?: string }

/** An event and where it stands: `sequence` among those of all processes, the audit log has its own. */
export type Published = LiveEvent & { type: LiveEventType; sequence?: number }
/** The last events that a follower has got. */
export type LivePlace = { sequence: number; audit: number }
/** `project_id`: only what belongs to this project. */
export type LiveFilter = {
  types: readonly LiveEventType[]
  project_id?: string | undefined /** Who follows. */
  actor: string
  /** What came after this; absent: from now on. */
  after?: LivePlace
}

/** Of one follower: some 2 MB. */
export const MAX_WAITING = 1_000

export type Follower = {
  filter: LiveFilter
  waiting: Published[]
  dropped: number
  isEnded: boolean
  /** Of what it has got. */
  place: LivePlace
  /** What comes while earlier events are read; undefined: none are. */
  later: Published[] | undefined
  wake(): void
}

/** A row that says that events before it are missing. */
export const GAP = 'gap'
export const eventOf = ({ type, at_ms, text, sequence }: LiveRow): Published => ({
  type: type as LiveEventType,
  at_ms,
  data: JSON.parse(text) as object,
  sequence,
})
export const auditOf = ({ data }: Published): number => (data as { sequence?: number }).sequence ?? 0

export const isFor = (
  { filter: { types, project_id: own } }: Follower,
  { type }: Published,
  project_id: string | null,
): boolean => types.includes(type) && (own === undefined || own === project_id)

export function give(follower: Follower, event: Published): void {
  if (follower.waiting.length < MAX_WAITING) follower.waiting.push(event)
  else follower.dropped++
  follower.wake()
}

export function drop(follower: Follower, events: number): void {
  follower.dropped += events
  follower.wake()
}

/** The event with the place of its follower after it. */
export function withId(follower: Follower, { sequence, ...event }: Published): LiveEvent {
  const { place } = follower
  if (sequence !== undefined) place.sequence = sequence
  else if (event.type === 'audit') place.audit = auditOf(event)
  return { ...event, id: `${place.sequence}.${place.audit}` }
}
