/** Actions on a task: cancel it, resume it, deliver its webhook again. Each asks first. */
import { type FormEvent, useState } from 'react'
import { useAct, useMe } from '../../api/hooks.ts'
import type { AdminTaskDetail } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog, Dialog, DialogActs } from '../../ui/dialog.tsx'
import { errorOf, FormError, TextField } from '../../ui/field.tsx'
import { useNow } from '../../ui/now.ts'
import { actsOf, isEnded } from './task-text.ts'

type Asked = 'cancel' | 'resume' | 'deliver'

export function TaskActs({ task }: { task: AdminTaskDetail }) {
  const [asked, setAsked] = useState<Asked>()
  const canOperate = useMe()?.rights.includes('operate') ?? false
  const { canCancel, canResume, canDeliver } = actsOf(task)
  const close = () => setAsked(undefined)
  if (!canOperate) return null
  return (
    <>
      {canDeliver && <Button onClick={() => setAsked('deliver')}>Deliver again</Button>}
      {canResume && <Button onClick={() => setAsked('resume')}>Resume</Button>}
      {canCancel && (
        <Button kind="danger" onClick={() => setAsked('cancel')}>
          Cancel task
        </Button>
      )}
      {asked === 'cancel' && <Cancel task={task} onClose={close} />}
      {asked === 'resume' && <Resume task={task} onClose={close} />}
      {asked === 'deliver' && <Deliver task={task} onClose={close} />}
    </>
  )
}

type ActProps = { task: AdminTaskDetail; onClose(): void }
const CHANGES = { changes: ['GET /admin/v1/tasks'] }

function Cancel({ task: { task_id, model, provider }, onClose }: ActProps) {
  const cancel = useAct('POST /admin/v1/tasks/{task_id}/cancel', {
    ...CHANGES,
    done: 'The task is canceled at its next step',
    onDone: onClose,
  })
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title="Cancel this task?"
      act="Cancel task"
      onConfirm={() => cancel.mutate({ params: { task_id } })}
      isBusy={cancel.isPending}
    >
      <p>
        The task of {model} ends at its next step, and its caller gets no result.
        {provider && ` ${provider} may still finish it and charge for it.`} This cannot be undone.
      </p>
    </ConfirmDialog>
  )
}

function Deliver({ task: { task_id, webhook }, onClose }: ActProps) {
  const deliver = useAct('POST /admin/v1/tasks/{task_id}/retry-delivery', {
    ...CHANGES,
    done: 'The webhook is sent again now',
    onDone: onClose,
  })
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title="Deliver the webhook again?"
      act="Deliver again"
      onConfirm={() => deliver.mutate({ params: { task_id } })}
      isBusy={deliver.isPending}
    >
      <p>
        <span className="mono wrap">{webhook?.url}</span>{' '}
        {webhook?.delivered_at === null
          ? 'gets the event that was not delivered.'
          : 'has received this event, and gets it once more with the same id: a receiver that does not look at the id handles it twice.'}
      </p>
    </ConfirmDialog>
  )
}

function Resume({ task: { task_id, status, deadline_at }, onClose }: ActProps) {
  const now = useNow()
  const isLate = !isEnded(status) && deadline_at <= now
  const [hours, setHours] = useState(isLate ? '2' : '')
  const resume = useAct('POST /admin/v1/tasks/{task_id}/resume', {
    ...CHANGES,
    done: 'The next step of the task is due now',
    onDone: onClose,
    showsError: true,
  })
  const seconds = hours.trim() === '' ? undefined : Math.round(Number(hours.replace(',', '.')) * 3_600)
  const isValid = seconds === undefined ? !isLate : seconds >= 1
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isValid)
      resume.mutate({ params: { task_id }, body: seconds === undefined ? {} : { deadline_seconds: seconds } })
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title="Resume this task"
      text="Its next step becomes due now: files are copied again, or the provider is asked for a late result. An order is never sent again."
    >
      <form className="form" onSubmit={submit}>
        <TextField
          label="New deadline in hours"
          help={isLate ? 'Its deadline has passed, so that it needs a new one.' : 'Empty: its deadline stays.'}
          inputMode="decimal"
          value={hours}
          onChange={setHours}
          error={errorOf(resume.error, 'deadline_seconds') ?? (isValid ? undefined : 'A number of hours.')}
        />
        <FormError error={resume.error} fields={['deadline_seconds']} />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={resume.isPending}>
            Resume
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
