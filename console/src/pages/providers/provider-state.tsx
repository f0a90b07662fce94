/** Parts shared by the list of providers and the page of one. */
import { type KnownProvider, problemOf } from '../../api/provider-health.ts'
import { Badge } from '../../ui/display.tsx'

export function ProviderState({ provider }: { provider: KnownProvider }) {
  const problem = problemOf(provider)
  return <StateBadge state={problem ?? null} />
}

/** `null`: in service. */
export function StateBadge({ state }: { state: string | null }) {
  if (state === null || state === 'available') return <Badge tone="ok">in service</Badge>
  return <Badge tone={state === 'drained' ? 'warn' : 'danger'}>{state}</Badge>
}
