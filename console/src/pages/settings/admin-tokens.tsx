/** The admin tokens: for scripts, and for who logs in without a link. */
import { useState } from 'react'
import { useAct, useApiList } from '../../api/hooks.ts'
import type { AdminToken, IssuedAdminToken } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog, Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Badge, Card, Nothing } from '../../ui/display.tsx'
import { FormError } from '../../ui/field.tsx'
import { SecretDialog } from '../../ui/secret-dialog.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'
import { type RoleDraft, RoleFields, roleOrder } from './role-fields.tsx'
import { ROLES, roleName } from './roles.ts'

const CHANGES = ['GET /admin/v1/admin-tokens']

export function AdminTokens() {
  const tokens = useApiList('GET /admin/v1/admin-tokens', {})
  const [isMaking, setMaking] = useState(false)
  const [revoking, setRevoking] = useState<AdminToken>()
  const revoke = useAct('DELETE /admin/v1/admin-tokens/{admin_token_id}', {
    changes: CHANGES,
    done: 'Admin token revoked',
    onDone: () => setRevoking(undefined),
  })
  const columns: Column<AdminToken>[] = [
    { key: 'name', head: 'Name', cell: ({ name }) => <span className="cut">{name}</span> },
    {
      key: 'state',
      head: 'State',
      cell: ({ disabled, declared }) => (
        <span className="row">
          <Badge tone={disabled ? 'danger' : 'ok'}>{disabled ? 'revoked' : 'active'}</Badge>
          {declared && <Badge>from the file</Badge>}
        </span>
      ),
    },
    { key: 'role', head: 'Role', cell: ({ role }) => roleName(role) },
    { key: 'prefix', head: 'Starts with', cell: ({ prefix }) => <span className="mono">{prefix}</span> },
    {
      key: 'used',
      head: 'Last used',
      cell: ({ last_used_at }) =>
        last_used_at === null ? <Nothing text="never" /> : <Time at={last_used_at} isRelative />,
    },
    {
      key: 'expires',
      head: 'Expires',
      cell: ({ expires_at }) => (expires_at === null ? <Nothing text="never" /> : <Time at={expires_at} isRelative />),
    },
    {
      key: 'acts',
      head: '',
      cell: (token) =>
        !token.disabled &&
        !token.declared && (
          <Button size="small" onClick={() => setRevoking(token)}>
            Revoke
          </Button>
        ),
    },
  ]
  return (
    <Card
      title="Admin tokens"
      isFlush
      acts={
        <Button size="small" icon="plus" onClick={() => setMaking(true)}>
          New admin token
        </Button>
      }
    >
      <Table
        label="Admin tokens"
        columns={columns}
        rows={tokens.rows}
        keyOf={({ admin_token_id }) => admin_token_id}
        isLoading={tokens.isLoading}
        error={tokens.error}
        onRetry={tokens.reload}
        hasMore={tokens.hasMore}
        isLoadingMore={tokens.isLoadingMore}
        onMore={tokens.more}
        empty={<p className="state">There is none. A script that uses the admin API needs one.</p>}
      />
      {isMaking && <NewAdminToken onClose={() => setMaking(false)} />}
      {revoking && (
        <ConfirmDialog
          open
          onClose={() => setRevoking(undefined)}
          title={`Revoke ${revoking.name}?`}
          act="Revoke admin token"
          isBusy={revoke.isPending}
          onConfirm={() => revoke.mutate({ params: { admin_token_id: revoking.admin_token_id } })}
        >
          <p>
            Every request with it is refused from now on, and sessions that it began end. This cannot be undone.{' '}
            {revoking.last_used_at === null ? (
              'It has never been used.'
            ) : (
              <>
                Last used <Time at={revoking.last_used_at} isRelative />.
              </>
            )}
          </p>
        </ConfirmDialog>
      )}
    </Card>
  )
}

function NewAdminToken({ onClose }: { onClose(): void }) {
  const [draft, setDraft] = useState<RoleDraft>({ name: '', role: 'viewer', project_id: '' })
  const [issued, setIssued] = useState<IssuedAdminToken>()
  const create = useAct('POST /admin/v1/admin-tokens', { changes: CHANGES, onDone: setIssued, showsError: true })
  if (issued)
    return (
      <SecretDialog
        title={`The secret of ${issued.name}`}
        text="Copy it now: it is shown only here."
        label="secret"
        secret={issued.secret}
        onClose={onClose}
      />
    )
  return (
    <Dialog open onClose={onClose} title="New admin token" text="For a script or a person who uses the admin API.">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate({ body: roleOrder(draft) })
        }}
      >
        <RoleFields
          draft={draft}
          onChange={(change) => setDraft((now) => ({ ...now, ...change }))}
          error={create.error}
          roles={ROLES.map(({ value }) => value)}
        />
        <FormError error={create.error} fields={['name', 'project_id']} />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={create.isPending}>
            Create admin token
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
