/** Takes a provider, one of its keys or nothing of it out of service, and puts it back. */
import { useState } from 'react'
import { useAct } from '../../api/hooks.ts'
import { IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { type Act, Menu } from '../../ui/menu.tsx'

type ServiceProps = {
  kind: 'provider' | 'key'
  /** `acme`, or `acme#spare`. */
  name: string
  state: string | null
  /** What a dialog says of its present use. */
  use: string
}

type Wanted = 'drained' | 'disabled'
const EFFECTS: Record<Wanted, string> = {
  drained: 'No new call goes there, even where no other target is left. Open calls and tasks go on.',
  disabled: 'No new call goes there, even where no other target is left. Open calls go on; its tasks wait.',
}
const CHANGES = ['GET /admin/v1/providers', 'GET /admin/v1/models', 'GET /admin/v1/overrides']

export function ServiceMenu({ kind, name, state, use }: ServiceProps) {
  const [wanted, setWanted] = useState<Wanted>()
  const set = useAct('PATCH /admin/v1/overrides/{kind}/{name}', {
    changes: CHANGES,
    done: `${name} is ${wanted ?? 'back in service'}`,
    onDone: () => setWanted(undefined),
  })
  const isOut = state === 'drained' || state === 'disabled'
  const put = (next: Wanted | null) => set.mutate({ params: { kind, name }, body: { state: next } })
  const acts: Act[] = [
    { label: 'Drain', icon: 'pause', disabled: state === 'drained', onClick: () => setWanted('drained') },
    {
      label: 'Disable',
      icon: 'stop',
      kind: 'danger',
      disabled: state === 'disabled',
      onClick: () => setWanted('disabled'),
    },
  ]
  return (
    <>
      <Menu
        button={<IconButton icon="more" label={`Service of ${name}`} />}
        groups={[
          ...(isOut ? [[{ label: 'Put back into service', icon: 'play' as const, onClick: () => put(null) }]] : []),
          acts,
        ]}
      />
      <ConfirmDialog
        open={wanted !== undefined}
        onClose={() => setWanted(undefined)}
        title={`${wanted === 'disabled' ? 'Disable' : 'Drain'} ${name}?`}
        act={wanted === 'disabled' ? 'Disable' : 'Drain'}
        isBusy={set.isPending}
        onConfirm={() => wanted && put(wanted)}
      >
        <p>{wanted && EFFECTS[wanted]}</p>
        <p>{use} It can be put back at any time.</p>
      </ConfirmDialog>
    </>
  )
}
