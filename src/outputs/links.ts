/** Signed links to files that work without a token until they expire. */
import { createHmac } from 'node:crypto'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { isSameText } from '../kit/secret.ts'
import type { Outputs } from './outputs.ts'

/** Links of the same minutes are equal, so that caches and polling clients see one URL instead of many. */
const STEP_SECONDS = 300
/** A short-lived link must not last much longer than configured. */
const STEPS_PER_LIFETIME = 12

type LinkParts = {
  clock: Clock
  secret: string
  /** Read at each link: the configuration may change. */
  link_hours: () => number
  files_base_url?: (() => string | undefined) | undefined
}

export function createLinks({
  clock,
  secret,
  link_hours,
  files_base_url,
}: LinkParts): Pick<Outputs, 'link' | 'verify'> {
  const sign = (task_id: string, index: number, expires: number) =>
    createHmac('sha256', secret).update(`output\n${task_id}\n${index}\n${expires}`).digest('base64url')
  return {
    link({ base_url, path, task_id, index }) {
      const lifetime = link_hours() * 3600
      const step = Math.max(1, Math.min(STEP_SECONDS, Math.floor(lifetime / STEPS_PER_LIFETIME)))
      const expires = Math.ceil((unixSeconds(clock) + lifetime) / step) * step
      const query = index === 0 ? '' : `index=${index}&`
      const signature = sign(task_id, index, expires)
      const origin = files_base_url?.()?.replace(/\/+$/, '') ?? base_url
      return `${origin}${path}/${task_id}/content?${query}expires=${expires}&signature=${signature}`
    },
    verify({ task_id, index, expires, signature }) {
      // Exactly as it was created: no sign, no exponent, no leading zero.
      const time = /^[1-9]\d{0,11}$/.test(expires) ? Number(expires) : undefined
      if (time === undefined || !isSameText(signature, sign(task_id, index, time))) return 'forged'
      return unixSeconds(clock) < time ? 'valid' : 'expired'
    },
  }
}
