/** Whether a webhook has arrived. */
import type { Webhook } from '../../api/types.ts'
import { Badge } from '../../ui/display.tsx'

const TONES = { delivered: 'ok', pending: 'info', given_up: 'danger' } as const

export const WebhookState = ({ state }: Pick<Webhook, 'state'>) => (
  <Badge tone={TONES[state]}>{state === 'given_up' ? 'given up' : state}</Badge>
)
