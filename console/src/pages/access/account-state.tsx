/** Whether a token or project can be used. */
import { Badge } from '../../ui/display.tsx'
import { useNow } from '../../ui/now.ts'

export type Account = { disabled: boolean; expires_at: number | null; declared?: boolean | undefined }

export const isEnded = ({ disabled, expires_at }: Account, now: number): boolean =>
  disabled || (expires_at !== null && expires_at <= now)

/** `ended`: the word for one that was disabled. */
export function AccountState({ account, ended }: { account: Account; ended: string }) {
  const now = useNow()
  if (account.disabled) return <Badge tone="danger">{ended}</Badge>
  if (isEnded(account, now)) return <Badge tone="warn">expired</Badge>
  return <Badge tone="ok">active</Badge>
}
