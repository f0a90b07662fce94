/** Adds one more key to a provider: tested alone, then written into the configuration. */
import { useState } from 'react'
import { useAct } from '../../api/hooks.ts'
import type { ProviderDraft } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { FormError, TextField } from '../../ui/field.tsx'
import { DraftApply } from './draft-apply.tsx'
import { type KeyDraft, KeyFields, keySettings } from './key-fields.tsx'
import { TestFacts } from './provider-test.tsx'

const SOURCES = ['key', 'variable', 'file'] as const

export function AddKey({ id }: { id: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button icon="plus" onClick={() => setOpen(true)}>
        Add a key
      </Button>
      {isOpen && <KeyDialog id={id} onClose={() => setOpen(false)} />}
    </>
  )
}

function KeyDialog({ id, onClose }: { id: string; onClose(): void }) {
  const [name, setName] = useState('')
  const [key, setKey] = useState<KeyDraft>({ from: 'key', value: '' })
  const test = useAct('POST /admin/v1/provider-drafts/test', { showsError: true })
  const draft: ProviderDraft = { id, new_key: { name: name.trim(), ...keySettings(key) } }
  const isComplete = name.trim() !== '' && key.value.trim() !== ''
  return (
    <Dialog
      open
      onClose={onClose}
      size="large"
      title={`Add a key to ${id}`}
      text="Calls are shared between the keys of a provider, and go to another one where a key is refused or at its limit."
    >
      <div className="form">
        <TextField
          label="Name of the key"
          value={name}
          maxLength={64}
          onChange={(value) => {
            setName(value)
            test.reset()
          }}
          help="Shown instead of the key, such as spare."
        />
        <KeyFields
          value={key}
          sources={SOURCES}
          onChange={(value) => {
            setKey(value)
            test.reset()
          }}
        />
        <div className="row">
          <Button
            icon="play"
            disabled={!isComplete}
            isBusy={test.isPending}
            onClick={() => test.mutate({ body: draft })}
          >
            Test
          </Button>
          <span className="soft">Asks for the list of models with this key, which costs nothing.</span>
        </div>
        <FormError error={test.error} />
        {test.data && <TestFacts report={test.data} />}
        <DraftApply draft={draft} disabled={!isComplete} onDone={onClose} />
      </div>
      <DialogActs>
        <Button onClick={onClose}>Close</Button>
      </DialogActs>
    </Dialog>
  )
}
