/** Acts that break what uses a token: a new secret, and its revocation. */
import { useState } from 'react'
import { useAct, useApi } from '../../api/hooks.ts'
import type { IssuedToken, Token } from '../../api/types.ts'
import { callCount } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog, Dialog, DialogActs } from '../../ui/dialog.tsx'
import { FormError } from '../../ui/field.tsx'
import { useNow } from '../../ui/now.ts'
import { Select } from '../../ui/select.tsx'
import { Time } from '../../ui/values.tsx'

const HOUR = 3_600
const DAY = 86_400
const OVERLAPS = [
  { value: '0', label: 'at once' },
  { value: String(HOUR), label: 'in an hour' },
  { value: String(DAY), label: 'in a day' },
  { value: String(7 * DAY), label: 'in a week' },
  { value: String(30 * DAY), label: 'in 30 days' },
]

type RotateProps = { token: Token; onClose(): void; onDone(issued: IssuedToken): void }

export function RotateToken({ token, onClose, onDone }: RotateProps) {
  const [overlap, setOverlap] = useState(String(DAY))
  const rotate = useAct('POST /admin/v1/tokens/{token_id}/rotate', {
    changes: ['GET /admin/v1/tokens'],
    onDone,
    showsError: true,
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Rotate the secret of ${token.name}`}
      text="It gets a new secret, with the same settings. Clients with the present one must change to the new one in time."
    >
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          rotate.mutate({
            params: { token_id: token.token_id },
            project: token.project_id,
            body: { overlap_seconds: Number(overlap) },
          })
        }}
      >
        <Select label="The present secret ends" value={overlap} options={OVERLAPS} onChange={setOverlap} />
        <LastUse token={token} />
        <FormError error={rotate.error} />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={rotate.isPending}>
            Make a new secret
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}

export function RevokeToken({ token, onClose }: { token: Token; onClose(): void }) {
  const revoke = useAct('DELETE /admin/v1/tokens/{token_id}', {
    // Not its limits: a revoked token has none.
    changes: ['GET /admin/v1/tokens$', 'GET /admin/v1/tokens/{token_id}$'],
    done: 'Token revoked',
    onDone: onClose,
  })
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Revoke ${token.name}?`}
      act="Revoke token"
      isBusy={revoke.isPending}
      onConfirm={() => revoke.mutate({ params: { token_id: token.token_id }, project: token.project_id })}
    >
      <p>Every call with it is refused from now on. This cannot be undone: a new token has another secret.</p>
      <LastUse token={token} />
    </ConfirmDialog>
  )
}

/** How much an act will break. */
function LastUse({ token: { token_id, last_used_at } }: { token: Token }) {
  const now = useNow()
  const end = Math.ceil(now / HOUR) * HOUR
  const query = {
    start: String(end - DAY),
    end: String(end),
    step: 'hour' as const,
    by: 'none' as const,
    token: token_id,
  }
  const { data } = useApi('GET /admin/v1/summary', { query })
  return (
    <p>
      {last_used_at !== null ? (
        <>
          Last used <Time at={last_used_at} isRelative />.
        </>
      ) : (
        data?.total.calls === 0 && 'It has never been used.'
      )}{' '}
      {data && `${callCount(data.total.calls)} in the last 24 hours.`}
    </p>
  )
}
