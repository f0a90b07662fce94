/** The sessions of everybody, each of which can be ended. */
import { useState } from 'react'
import { useAct, useApiList } from '../../api/hooks.ts'
import type { AdminSession } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Badge, Card } from '../../ui/display.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'
import { roleName } from './roles.ts'

const CHANGES = ['GET /admin/v1/sessions']

/** `own`: the session of the person who looks; it is ended by logging out. */
export function Sessions({ own }: { own: string | null }) {
  const sessions = useApiList('GET /admin/v1/sessions', {})
  const [ending, setEnding] = useState<AdminSession>()
  const end = useAct('DELETE /admin/v1/sessions/{session_id}', {
    changes: CHANGES,
    done: 'Session ended',
    onDone: () => setEnding(undefined),
  })
  const columns: Column<AdminSession>[] = [
    { key: 'actor', head: 'Person', cell: ({ actor }) => <span className="cut">{actor}</span> },
    { key: 'role', head: 'Role', cell: ({ role }) => roleName(role) },
    { key: 'address', head: 'From', cell: ({ address, user_agent }) => <span title={user_agent}>{address}</span> },
    { key: 'used', head: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} isRelative /> },
    { key: 'expires', head: 'Ends', cell: ({ expires_at }) => <Time at={expires_at} isRelative /> },
    {
      key: 'acts',
      head: '',
      cell: (session) =>
        session.session_id === own ? (
          <Badge tone="info">this one</Badge>
        ) : (
          <Button size="small" onClick={() => setEnding(session)}>
            End
          </Button>
        ),
    },
  ]
  return (
    <Card title="Sessions" isFlush>
      <Table
        label="Sessions"
        columns={columns}
        rows={sessions.rows}
        keyOf={({ session_id }) => session_id}
        isLoading={sessions.isLoading}
        error={sessions.error}
        onRetry={sessions.reload}
        hasMore={sessions.hasMore}
        isLoadingMore={sessions.isLoadingMore}
        onMore={sessions.more}
      />
      {ending && (
        <ConfirmDialog
          open
          onClose={() => setEnding(undefined)}
          title={`End the session of ${ending.actor}?`}
          act="End session"
          isBusy={end.isPending}
          onConfirm={() => end.mutate({ params: { session_id: ending.session_id } })}
        >
          <p>
            The person is asked to log in again. Last used <Time at={ending.last_used_at} isRelative />.
          </p>
        </ConfirmDialog>
      )}
    </Card>
  )
}
