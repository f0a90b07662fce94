/** Explains in sentences how a request was routed: each attempt, why it ended, and what followed. */
import { nameOf, type WaterfallAttempt } from './waterfall.ts'

export type RoutedRequest = {
  attempts: readonly WaterfallAttempt[]
  model: string
  requested_model?: string | undefined
  error: string | null
  cache?: string | undefined
  queued_ms?: number | undefined
}

/** Why the call went on, or did not, after an attempt that failed. */
const AFTER: Record<string, string> = {
  other_target: 'Another target was tried.',
  other_key: 'Another key of the same provider was tried.',
  same_target: 'The same target was tried again.',
  fallback_model: 'The fallback model was tried.',
  hedge: 'A second target was asked beside it, because it was slow.',
  not_retried: 'Another attempt would not have helped, so none was made.',
  tries_used: 'The number of tries was used up.',
  call_ended: 'The call ended, so no other attempt was made.',
  none_left: 'No other target was left: all were tried or avoided, or the deadline was reached.',
}

export type Step = { title: string; text: string; tone: 'ok' | 'danger' | 'plain' }

export function explainAttempt(attempt: WaterfallAttempt, duration: (ms: number) => string): Step {
  const { error, upstream_status, ms, hedge, lost, next } = attempt
  const started = hedge ? 'Asked beside the first one, which was slow. ' : ''
  const after = ms === undefined ? '' : ` after ${duration(ms)}`
  const then = next === undefined ? '' : ` ${AFTER[next] ?? `Then: ${next}.`}`
  const title = nameOf(attempt)
  if (lost)
    return { title, tone: 'plain', text: `${started}Given up${after}, because another target answered first.${then}` }
  if (error === undefined) return { title, tone: 'ok', text: `${started}Answered${after}.${then}` }
  const status = upstream_status === undefined ? '' : ` (the provider returned ${upstream_status})`
  return { title, tone: 'danger', text: `${started}Failed${after} with ${error}${status}.${then}` }
}

/** What the attempts do not say. */
export function explainRequest(request: RoutedRequest, duration: (ms: number) => string): string[] {
  const { attempts, model, requested_model, error, cache, queued_ms } = request
  const sentences: string[] = []
  if (requested_model !== undefined && requested_model !== model)
    sentences.push(`The client asked for ${requested_model}; ${model} served the call.`)
  if (queued_ms !== undefined && queued_ms > 0)
    sentences.push(`The call waited ${duration(queued_ms)} for a free place at the provider.`)
  if (attempts.length === 0) {
    if (cache === 'hit') sentences.push('The answer came from the response cache: no provider was called.')
    else if (error !== null)
      sentences.push(`The gateway refused the request with ${error} before it called a provider.`)
    else sentences.push('No provider was called.')
  }
  return sentences
}
