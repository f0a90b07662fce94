/** Links to files that work without a token: signed, and over after a while. */
import { createHmac } from 'node:crypto'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { isSameText } from '../kit/secret.ts'
import type { Outputs } from './outputs.ts'

/** Links of the same minutes are the same, so that caches and clients that poll see one address, not a hundred. */
const STEP_SECONDS = 300
/** ... but a short-lived link is not made much longer than it was meant to be. */
const STEPS_A_LIFE = 12

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
      const life = link_hours() * 3600
      const step = Math.max(1, Math.min(STEP_SECONDS, Math.floor(life / STEPS_A_LIFE)))
      const expires = Math.ceil((unixSeconds(clock) + life) / step) * step
      const which = index === 0 ? '' : `index=${index}&`
      const signature = sign(task_id, index, expires)
      const origin = files_base_url?.()?.replace(/\/+$/, '') ?? base_url
      return `${origin}${path}/${task_id}/content?${which}expires=${expires}&signature=${signature}`
    },
    verify({ task_id, index, expires, signature }) {
      // As it was written: no sign, no exponent, no leading zero.
      const time = /^[1-9]\d{0,11}$/.test(expires) ? Number(expires) : undefined
      if (time === undefined || !isSameText(signature, sign(task_id, index, time))) return 'forged'
      return unixSeconds(clock) < time ? 'valid' : 'expired'
    },
  }
}
