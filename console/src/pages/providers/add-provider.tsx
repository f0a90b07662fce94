/** What to write into the configuration for a further provider. */
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Code } from '../../ui/display.tsx'
import { TextField } from '../../ui/field.tsx'
import { Segments } from '../../ui/tabs.tsx'

/** A name that needs no quotes in YAML. */
const PLAIN = /^[a-z][\w-]*$/i
const quoted = (value: string): string => (PLAIN.test(value) ? value : JSON.stringify(value))

export function AddProvider({ open, onClose }: { open: boolean; onClose(): void }) {
  const [way, setWay] = useState('vendor')
  const [preset, setPreset] = useState('openai')
  const [address, setAddress] = useState('http://10.0.0.5:8000/v1')
  const id = way === 'vendor' ? preset : 'workshop'
  const variable = `${id.toUpperCase().replaceAll(/\W/g, '_')}_API_KEY`
  const first = way === 'vendor' ? `preset: ${quoted(preset)}` : `base_url: ${quoted(address)}`
  const yaml = `providers:\n  ${quoted(id)}:\n    ${first}\n    key: \${${variable}}\n    discover: true\n`
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Add a provider"
      text="Write it into gatehouse.yaml: a running gateway applies the file when it changes, and finds the models of the provider."
    >
      <div className="form">
        <Segments
          label="What it is"
          value={way}
          options={[
            { value: 'vendor', label: 'A known vendor' },
            { value: 'address', label: 'An address' },
          ]}
          onChange={setWay}
        />
        {way === 'vendor' ? (
          <TextField
            label="Preset"
            value={preset}
            onChange={setPreset}
            help={
              <>
                Its name in the{' '}
                <a href="/manual/provider-presets" target="_blank" rel="noreferrer">
                  list of presets
                </a>
                .
              </>
            }
          />
        ) : (
          <TextField label="Address" value={address} onChange={setAddress} help="Of any API in the form of OpenAI's." />
        )}
        <Code label="configuration" text={yaml} />
        <p className="soft">
          The key stays out of the file: set <code>{variable}</code> in the environment of the gateway before it starts.{' '}
          <code>gatehouse check --online</code> tests the file.
        </p>
      </div>
      <DialogActs>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActs>
    </Dialog>
  )
}
