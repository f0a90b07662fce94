/** The person who is logged in, and, for owners, everybody else: sessions, admin tokens, login links. */
import { useMe } from '../../api/hooks.ts'
import type { Administrator } from '../../api/types.ts'
import { hasRight } from '../../shell/page.ts'
import { A } from '../../ui/button.tsx'
import { Badge, Card, Facts, Nothing } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { AdminTokens } from './admin-tokens.tsx'
import { InviteButton } from './invite.tsx'
import { roleName } from './roles.ts'
import { Sessions } from './sessions.tsx'

export function SettingsPage() {
  const me = useMe()
  const isOwner = hasRight(me, 'own')
  return (
    <>
      <PageHead
        title="People and sign-in"
        note="Who may use this console and the admin API, and as what."
        acts={hasRight(me, 'manage') && me && <InviteButton me={me} />}
      />
      <div className="stack">
        {me && <You me={me} />}
        {isOwner && me && <Sessions own={me.session_id} />}
        {isOwner && <AdminTokens />}
      </div>
    </>
  )
}

const You = ({ me }: { me: Administrator }) => (
  <Card title="You">
    <Facts
      rows={[
        [
          'Name in the audit log',
          <span key="actor" className="mono wrap">
            {me.actor}
          </span>,
        ],
        ['Role', <Badge key="role">{roleName(me.role)}</Badge>],
        [
          'Project',
          me.project_id ? (
            <A key="project" to={`/projects/${me.project_id}`}>
              {me.project_id}
            </A>
          ) : (
            <Nothing key="project" text="all" />
          ),
        ],
        ['Rights', me.rights.join(', ')],
        ['Logged in by', me.via === 'session' ? 'a session' : 'an admin token'],
      ]}
    />
  </Card>
)
