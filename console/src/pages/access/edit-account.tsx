/** The form that changes a token or a project: only what was changed in it is sent. */
import { useState } from 'react'
import type { Project, Token } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { FormError } from '../../ui/field.tsx'
import { AccountFields, LabelField } from './account-form.tsx'
import { changesOf, type Draft, draftOf } from './draft.ts'

type EditProps = {
  title: string
  account: Token | Project
  /** Whether the person may change nothing else of it. */
  isLabelsOnly?: boolean
  onClose(): void
  onSave(changes: ReturnType<typeof changesOf>): void
  isBusy: boolean
  error: Error | null
}

export function EditAccount({ title, account, isLabelsOnly = false, onClose, onSave, isBusy, error }: EditProps) {
  const [before] = useState(() => draftOf(account))
  const [draft, setDraft] = useState(before)
  const changes = changesOf(before, draft)
  const fields = { draft, error, onChange: (change: Partial<Draft>) => setDraft((now) => ({ ...now, ...change })) }
  const isChanged = Object.keys(changes).length > 0
  return (
    <Dialog open onClose={onClose} title={title} text="Changes take effect at once, in every process within a second.">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          onSave(changes)
        }}
      >
        {isLabelsOnly ? (
          <>
            <LabelField {...fields} />
            <FormError error={error} fields={['labels']} />
          </>
        ) : (
          <AccountFields {...fields} />
        )}
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={isBusy} disabled={!isChanged}>
            Save
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
