/** Adds a provider: what it is, its key, a test with its list of models, and what is written into the configuration. */
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAct, useApi } from '../../api/hooks.ts'
import type { ProviderDraft, ProviderPresets } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/display.tsx'
import { FormError, TextField } from '../../ui/field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Combobox } from '../../ui/select.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { DraftApply } from './draft-apply.tsx'
import { type HeaderRow, HeaderRows, headersOf } from './header-rows.tsx'
import { type KeyDraft, KeyFields, keySettings } from './key-fields.tsx'
import { type ListedModel, ModelChoice, type Offer } from './model-choice.tsx'
import { TestFacts } from './provider-test.tsx'

export function AddProviderPage() {
  const presets = useApi('GET /admin/v1/provider-presets', {})
  return (
    <>
      <PageHead
        title="Add a provider"
        crumbs={[{ to: '/providers', label: 'Providers' }]}
        note="It is tested with what you type before anything is written."
      />
      <Loaded query={presets} lines={8}>
        {(data) => <AddForm known={data} />}
      </Loaded>
    </>
  )
}

type Draft = {
  by: 'preset' | 'kind'
  preset: string
  kind: string
  base_url: string
  id: string
  key: KeyDraft
  headers: HeaderRow[]
}
const EMPTY: Draft = {
  by: 'preset',
  preset: '',
  kind: 'chatcompat',
  base_url: '',
  id: '',
  key: { from: 'key', value: '' },
  headers: [],
}

function AddForm({ known }: { known: ProviderPresets }) {
  const navigate = useNavigate()
  const [draft, setDraft] = useState(EMPTY)
  const [offer, setOffer] = useState<Offer>('all')
  const test = useAct('POST /admin/v1/provider-drafts/test', { showsError: true })
  const change = (part: Partial<Draft>) => {
    setDraft((now) => ({ ...now, ...part }))
    test.reset()
  }
  const settings = settingsOf(draft)
  const id = draft.id.trim() || (draft.by === 'preset' ? draft.preset : '')
  const isComplete = id !== '' && (draft.by === 'preset' ? draft.preset !== '' : draft.kind !== '')
  const list = test.data?.list ?? []
  return (
    <div className="stack">
      <div className="grid-wide">
        <Card title="What it is">
          <WhatItIs draft={draft} known={known} onChange={change} />
        </Card>
        <Card title="Key and headers">
          <div className="form">
            <KeyFields value={draft.key} onChange={(key) => change({ key })} hint={variableHint(draft, known)} />
            <HeaderRows rows={draft.headers} onChange={(headers) => change({ headers })} />
          </div>
        </Card>
      </div>
      <Card title="Test">
        <div className="stack-small">
          <p className="soft">Asks it for its list of models, which costs nothing. Nothing is written.</p>
          <div className="row">
            <Button
              icon="play"
              isBusy={test.isPending}
              disabled={!isComplete}
              onClick={() => test.mutate({ body: { id, settings } })}
            >
              Test
            </Button>
          </div>
          <FormError error={test.error} />
          {test.data && <TestFacts report={test.data} />}
        </div>
      </Card>
      {list.length > 0 && (
        <Card title="Models">
          <ModelChoice list={list} offer={offer} onChange={setOffer} />
        </Card>
      )}
      <Card title="Configuration">
        <DraftApply
          draft={wholeDraft({ id, settings, offer, list })}
          disabled={!isComplete || (offer !== 'all' && offer.size === 0)}
          onDone={() => void navigate({ to: '/providers' } as never)}
        />
      </Card>
    </div>
  )
}

type PartProps = { draft: Draft; known: ProviderPresets; onChange(part: Partial<Draft>): void }

function WhatItIs({ draft, known, onChange }: PartProps) {
  const isPreset = draft.by === 'preset'
  const preset = known.presets.find(({ id }) => id === draft.preset)
  return (
    <div className="form">
      <Segments
        label="What it is"
        value={draft.by}
        options={[
          { value: 'preset', label: 'A known vendor' },
          { value: 'kind', label: 'An address' },
        ]}
        onChange={(by) => onChange({ by: by as Draft['by'] })}
      />
      {isPreset ? (
        <Combobox
          label="Vendor"
          value={draft.preset}
          options={known.presets.map(({ id, base_url }) => ({ value: id, label: id, note: hostOf(base_url) }))}
          onChange={(value) => onChange({ preset: value, id: value })}
          placeholder="openai, mistral, ollama"
        />
      ) : (
        <Combobox
          label="API"
          value={draft.kind}
          options={known.kinds.map(({ id }) => ({ value: id, label: id }))}
          onChange={(kind) => onChange({ kind })}
          help={known.kinds.find(({ id }) => id === draft.kind)?.calls.replaceAll('`', '')}
        />
      )}
      <TextField
        label="Address"
        value={draft.base_url}
        onChange={(base_url) => onChange({ base_url })}
        placeholder={isPreset ? (preset?.base_url ?? '') : 'https://api.example.com/v1'}
        help={
          isPreset ? "Empty: the vendor's own." : "With its version. Empty: the vendor's own, where the API has one."
        }
      />
      <TextField
        label="Name"
        value={draft.id}
        onChange={(id) => onChange({ id })}
        maxLength={128}
        help="Ids of its models begin with it, as in acme/large."
      />
    </div>
  )
}

const hostOf = (address: string): string => URL.parse(address)?.host ?? address

function settingsOf({ by, preset, kind, base_url, key, headers }: Draft): NonNullable<ProviderDraft['settings']> {
  const address = base_url.trim()
  const sent = headersOf(headers)
  return {
    ...(by === 'preset' ? { preset } : { kind }),
    ...(address !== '' && { base_url: address }),
    ...keySettings(key),
    ...(sent && { headers: sent }),
  }
}

function variableHint({ by, preset, kind }: Draft, { presets, kinds }: ProviderPresets): string | undefined {
  const variables =
    (by === 'preset'
      ? presets.find(({ id }) => id === preset)?.variables
      : kinds.find(({ id }) => id === kind)?.variables) ?? []
  if (variables.length === 0) return undefined
  return `The gateway takes it from ${variables.join(' or ')}, where one of them is set.`
}

type Whole = { id: string; settings: NonNullable<ProviderDraft['settings']>; offer: Offer; list: ListedModel[] }

function wholeDraft({ id, settings, offer, list }: Whole): ProviderDraft {
  if (offer === 'all') return { id, settings: { ...settings, discover: true } }
  const models = list.filter(({ model }) => offer.has(model))
  return { id, settings, models }
}
