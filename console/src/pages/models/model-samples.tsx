/** Samples of calls of one model, with the address of this gateway and the name of a chosen token. */
import { useState } from 'react'
import { useApiList } from '../../api/hooks.ts'
import type { AdminModelWithSettings } from '../../api/types.ts'
import { familyName } from '../../lib/families.ts'
import { choice, text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Code } from '../../ui/display.tsx'
import { Select } from '../../ui/select.tsx'
import { Empty } from '../../ui/states.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { sampleFamilies, samplesOf } from './samples.ts'

export function ModelSamples({ model: { id, families, speech } }: { model: AdminModelWithSettings }) {
  const shown = sampleFamilies(families)
  const [{ api, language }, change] = useAddress({ api: choice(shown, shown[0] ?? ''), language: text('curl') })
  const [token, setToken] = useState('')
  const tokens = useApiList('GET /admin/v1/tokens', { query: { active: 'true', order: 'newest' } })
  if (shown.length === 0) return <Empty title="There is no sample for this model">See the API reference.</Empty>
  const samples = samplesOf(api, { origin: location.origin, model: id, speech })
  const sample = samples.find(({ name }) => name === language) ?? samples[0]
  return (
    <div className="stack">
      <div className="row">
        <Select
          isCompact
          label="API"
          value={api}
          options={shown.map((value) => ({ value, label: familyName(value) }))}
          onChange={(value) => change({ api: value })}
        />
        <Select
          isCompact
          label="Token"
          value={token}
          options={[
            { value: '', label: 'any' },
            ...tokens.rows.map((one) => ({ value: one.token_id, label: one.name || one.token_id })),
          ]}
          onChange={setToken}
        />
        <Segments
          label="Language or agent"
          value={sample?.name ?? ''}
          options={samples.map(({ name }) => ({ value: name, label: name }))}
          onChange={(value) => change({ language: value })}
        />
      </div>
      <p className="soft">
        <code>GATEHOUSE_TOKEN</code> is the secret of {nameOf(tokens.rows, token)}, which was shown once when it was
        made.
      </p>
      {sample && <Code label={`${sample.name} sample`} text={sample.text} />}
    </div>
  )
}

const nameOf = (all: { token_id: string; name: string }[], id: string): string => {
  const found = all.find(({ token_id }) => token_id === id)
  return found ? `the token “${found.name || found.token_id}”` : 'a token that may use this model'
}
