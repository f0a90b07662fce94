/** Those who follow live events: what each of them gets, and how far it has read. */
import type { LiveRow } from '../../store/requests/live-store.ts'

export const LIVE_EVENT_TYPES = ['request', 'audit', 'alert', 'task'] as const
type LiveEventType = (typeof LIVE_EVENT_TYPES)[number]

/** `text`: JSON. Of `dropped`: `events` is null where nobody knows how many. `id`: of a follower that comes back after it. */
export type LiveEvent = { type: LiveEventType | 'dropped'; at_ms: number; text: string; id?: string }

/** An event, whose text is made once, and only for who reads it. It has the number that says where it stands. */
export type LiveItem = {
  type: LiveEventType | 'dropped'
  at_ms: number
  /** Null: it belongs to the installation, and only those who may see all get it. */
  project_id: string | null
  data?: () => object
  text?: string
  /** Among the events of this process. */
  number?: number
  /** Among those of other processes, in the store. */
  sequence?: number
  /** In the audit log. */
  audit?: number
}

/** The last events that a follower has got: of other processes, of the audit log, and of the process that it followed. */
type LivePlace = { sequence: number; audit: number; process_id: string; number: number }
export type LiveFilter = {
  types: readonly LiveEventType[]
  /** Only what belongs to this project. */
  project_id?: string | undefined
  /** Of the requests of a batch, at most so many of the newest; the others count as dropped. */
  newest?: number | undefined
  actor: string
  /** What came after this; absent: from now on. */
  after?: LivePlace
}

/** Of one follower, in references to events. */
export const MAX_WAITING = 1_000

export type Follower = {
  filter: LiveFilter
  waiting: LiveItem[]
  dropped: number
  isEnded: boolean
  /** Of what it has read. */
  place: LivePlace
  /** The last row of the store that was given to it; undefined: it reads earlier ones. */
  sequence: number | undefined
  /** The last row of the audit log that was given to it. */
  audit: number
  /** The process in which it followed before has reported what it had kept, or need not. */
  hasReported: boolean
  wake(): void
  /** They end its waits. */
  stops: Set<() => void>
}

/** A row that says that events of its process before its number may be missing. */
const GAP = 'gap'

export const textOf = (item: LiveItem): string => (item.text ??= JSON.stringify(item.data?.() ?? {}))

const isFor = ({ filter: { types, project_id: own } }: Follower, { type, project_id }: LiveItem): boolean =>
  type !== 'dropped' && types.includes(type) && (own === undefined || own === project_id)

export function give(follower: Follower, item: LiveItem): void {
  if (!isFor(follower, item)) return
  if (follower.waiting.length < MAX_WAITING) follower.waiting.push(item)
  else follower.dropped++
  follower.wake()
}

function drop(follower: Follower, events: number): void {
  follower.dropped += events
  follower.wake()
}

/** Something is missing, and nobody knows how much. */
export function lose(follower: Follower, at_ms: number): void {
  follower.waiting.push({ type: 'dropped', at_ms, project_id: null, text: '{"events":null}' })
  follower.wake()
}

/** A row of another process; its own rows are known to a process. */
export function giveRow(follower: Follower, row: LiveRow): void {
  const { filter, place } = follower
  follower.sequence = row.sequence
  if (row.process_id === place.process_id) return
  const former = filter.after
  const isFormer = former !== undefined && former.process_id === row.process_id
  const { type, at_ms, project_id, text, sequence } = row
  if (row.late && !former) return
  if (type === GAP) readGap(follower, row, isFormer ? former.number : undefined)
  else if (!isFormer || (row.number ?? 0) > former.number) {
    give(follower, { type: type as LiveEventType, at_ms, project_id, text, sequence })
  }
  if (isFormer) follower.hasReported = true
}

function readGap(follower: Follower, { text, late, number, at_ms }: LiveRow, known: number | undefined): void {
  const { lost = true, events = null } = JSON.parse(text) as { lost?: boolean; events?: number | null }
  if (late && known !== undefined) {
    if ((number ?? 0) > known) lose(follower, at_ms)
  } else if (lost && events !== null) drop(follower, events)
  else if (lost && (late || follower.filter.after)) lose(follower, at_ms)
}

type GapRow = Pick<LiveRow, 'at_ms' | 'process_id' | 'number' | 'late'>

export const gapRow = (row: GapRow, missing: { lost: boolean; events?: number }): Omit<LiveRow, 'sequence'> => ({
  ...row,
  type: GAP,
  project_id: null,
  text: JSON.stringify(missing),
})

/** All that waits for a follower, each event with the place after it. */
export function takeBatch(follower: Follower, at_ms: number): LiveEvent[] {
  const { waiting, place } = follower
  const { kept, left } = newestOf(waiting, follower.filter.newest)
  const dropped = follower.dropped + left
  follower.waiting = []
  follower.dropped = 0
  const batch: LiveEvent[] = kept.map((item) => {
    const { type, sequence, audit, number } = item
    if (sequence !== undefined) place.sequence = sequence
    else if (audit !== undefined) place.audit = audit
    else if (number !== undefined) place.number = number
    const event = { type, at_ms: item.at_ms, text: textOf(item) }
    return type === 'dropped' ? event : { ...event, id: placeText(place) }
  })
  if (dropped > 0) batch.push({ type: 'dropped', at_ms, text: JSON.stringify({ events: dropped }) })
  return batch
}

/** Nobody reads hundreds of rows a second: their texts are not even made. */
function newestOf(waiting: LiveItem[], newest = Number.POSITIVE_INFINITY): { kept: LiveItem[]; left: number } {
  const isRequest = ({ type }: LiveItem) => type === 'request'
  let left = waiting.length <= newest ? 0 : Math.max(0, waiting.filter(isRequest).length - newest)
  const kept = left === 0 ? waiting : waiting.filter((item) => !isRequest(item) || left-- <= 0)
  return { kept, left: waiting.length - kept.length }
}

const placeText = ({ sequence, audit, process_id, number }: LivePlace): string =>
  `${sequence}.${audit}.${process_id}.${number}`

/** Undefined where it is none of ours, as a browser sends whatever it was given last. */
export function readPlace(id: string | null): LivePlace | undefined {
  const [, sequence, audit, process_id, number] =
    /^(\d{1,15})\.(\d{1,15})\.(\w{1,40})\.(\d{1,15})$/.exec(id ?? '') ?? []
  if (sequence === undefined || process_id === undefined) return undefined
  return { sequence: Number(sequence), audit: Number(audit), process_id, number: Number(number) }
}
