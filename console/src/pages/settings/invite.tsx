/** Makes a link by which a person logs in once. */
import { useState } from 'react'
import { useAct } from '../../api/hooks.ts'
import type { Administrator } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { FormError } from '../../ui/field.tsx'
import { SecretDialog } from '../../ui/secret-dialog.tsx'
import { Time } from '../../ui/values.tsx'
import { type RoleDraft, RoleFields, roleOrder } from './role-fields.tsx'
import { isOfProject, ROLES, type Role } from './roles.ts'

/** Nobody gives a role that they lack; the gateway decides it again. */
const rolesOf = (me: Administrator): Role[] =>
  ROLES.filter(({ value }) => me.role === 'owner' || (me.role === 'project_admin' && isOfProject(value))).map(
    ({ value }) => value,
  )

export function InviteButton({ me }: { me: Administrator }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="primary" icon="plus" onClick={() => setOpen(true)}>
        Invite a person
      </Button>
      {isOpen && <Invite me={me} onClose={() => setOpen(false)} />}
    </>
  )
}

function Invite({ me, onClose }: { me: Administrator; onClose(): void }) {
  const roles = rolesOf(me)
  const [draft, setDraft] = useState<RoleDraft>({
    name: '',
    role: roles.includes('viewer') ? 'viewer' : 'project_member',
    project_id: me.project_id ?? '',
  })
  const invite = useAct('POST /admin/v1/login-links', { showsError: true })
  if (invite.data)
    return (
      <SecretDialog
        title={`A link for ${draft.name}`}
        text="It works once. Send it to nobody else."
        label="login link"
        secret={invite.data.link}
        onClose={onClose}
      >
        <p className="soft">
          Valid until <Time at={invite.data.expires_at} />.
        </p>
      </SecretDialog>
    )
  return (
    <Dialog
      open
      onClose={onClose}
      title="Invite a person"
      text="Makes a link by which they log in once, without a password."
    >
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          invite.mutate({ body: roleOrder(draft) })
        }}
      >
        <RoleFields
          draft={draft}
          onChange={(change) => setDraft((now) => ({ ...now, ...change }))}
          error={invite.error}
          roles={roles}
        />
        <FormError error={invite.error} fields={['name', 'project_id']} />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={invite.isPending}>
            Make a link
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
