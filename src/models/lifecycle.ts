/** A model's lifecycle: active, deprecated, retired (specification 3.1), by its configured status and its dates. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { headerValue } from '../kit/header-value.ts'
import type { ModelStatus } from '../spec/model.ts'

export type Life = {
  status?: ModelStatus | undefined
  deprecated_at?: number | undefined
  retired_at?: number | undefined
  replaced_by?: string | undefined
}

/** The later of the configured status and the status that follows from the dates (unix seconds). */
export function statusAt(life: Life, now: number): ModelStatus {
  if (life.status === 'retired' || isPast(life.retired_at, now)) return 'retired'
  if (life.status === 'deprecated' || isPast(life.deprecated_at, now)) return 'deprecated'
  return 'active'
}

const isPast = (time: number | undefined, now: number): boolean => time !== undefined && time <= now

/** Whether it is deprecated, or will be deprecated or retired. */
export function isEnding(life: Life, now: number): boolean {
  const status = statusAt(life, now)
  if (status !== 'active') return status === 'deprecated'
  return life.deprecated_at !== undefined || life.retired_at !== undefined
}

/** When one of them has another status, in order. */
export const lifeDates = (lives: readonly Life[]): number[] =>
  lives
    .flatMap(({ deprecated_at, retired_at }) => [deprecated_at, retired_at])
    .filter((date) => date !== undefined)
    .sort((a, b) => a - b)

/**
 * The model to use instead: the first of the chain of successors that is not retired, or that is not in the catalogue.
 * The configured successor if the chain ends without one.
 */
export function livingSuccessor({ replaced_by }: Life, find: (id: string) => Life | undefined, now: number) {
  const seen = new Set<string>()
  for (let next = replaced_by; next !== undefined && !seen.has(next); ) {
    seen.add(next)
    const found = find(next)
    if (found === undefined || statusAt(found, now) !== 'retired') return next
    next = found.replaced_by
  }
  return replaced_by
}

/**
 * The response headers of a deprecated or retired model: `deprecation` (RFC 9745), `sunset` (RFC 8594), the successor
 * as a link and by name. None for an active model.
 */
export function lifecycleHeaders(life: Life, clock: Clock): Record<string, string> {
  if (statusAt(life, unixSeconds(clock)) === 'active') return {}
  const headers: Record<string, string> = {
    deprecation: life.deprecated_at === undefined ? 'true' : `@${life.deprecated_at}`,
  }
  if (life.retired_at !== undefined) headers.sunset = new Date(life.retired_at * 1000).toUTCString()
  if (life.replaced_by !== undefined) {
    headers.link = `</v1/models/${encodeURI(life.replaced_by.toWellFormed())}>; rel="successor-version"`
    headers['x-model-replaced-by'] = headerValue(life.replaced_by)
  }
  return headers
}

type ChosenModel = Record<'model' | 'requested', Life & { id: string }>

/** The same for the requested model, and the model that serves in its place. */
export function modelHeaders({ model, requested }: ChosenModel, clock: Clock): Record<string, string> {
  const headers = lifecycleHeaders(requested, clock)
  if (model.id === requested.id) return headers
  return { ...headers, 'x-model-requested': headerValue(requested.id), 'x-model-served': headerValue(model.id) }
}
