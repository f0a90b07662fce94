/** Which of the models that a provider lists the gateway offers: all of them, also later ones, or those that are chosen. */
import { useState } from 'react'
import type { Api } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { SearchField } from '../../ui/filters.tsx'
import { Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'

export type ListedModel = Api['POST /admin/v1/provider-drafts/test']['response']['list'][number]
export type Offer = 'all' | ReadonlySet<string>

export function ModelChoice({
  list,
  offer,
  onChange,
}: {
  list: ListedModel[]
  offer: Offer
  onChange(offer: Offer): void
}) {
  const [q, setSearch] = useState('')
  const shown = list.filter(({ model }) => model.toLowerCase().includes(q.toLowerCase()))
  const chosen = offer === 'all' ? new Set<string>() : offer
  const set = (names: string[], isChosen: boolean) => {
    const next = new Set(chosen)
    for (const name of names) isChosen ? next.add(name) : next.delete(name)
    onChange(next)
  }
  return (
    <div className="stack-small">
      <Segments
        label="Models to offer"
        value={offer === 'all' ? 'all' : 'chosen'}
        options={[
          { value: 'all', label: 'All, also later ones' },
          { value: 'chosen', label: 'Chosen ones' },
        ]}
        onChange={(value) => onChange(value === 'all' ? 'all' : new Set())}
      />
      {offer !== 'all' && (
        <>
          <div className="row">
            <SearchField label="Find a model" value={q} onChange={setSearch} />
            <Button
              size="small"
              onClick={() =>
                set(
                  shown.map(({ model }) => model),
                  true,
                )
              }
            >
              Choose these {shown.length}
            </Button>
            <Button size="small" onClick={() => onChange(new Set())}>
              Choose none
            </Button>
          </div>
          <Table
            label="Models that it lists"
            rows={shown}
            keyOf={({ model }) => model}
            columns={[
              {
                key: 'model',
                head: 'Model',
                cell: ({ model }) => (
                  <Checkbox label={model} checked={chosen.has(model)} onChange={(is) => set([model], is)} />
                ),
              },
              { key: 'families', head: 'For', cell: ({ families }) => families?.join(', ') ?? 'chat' },
            ]}
            foot={`${chosen.size} of ${list.length} chosen`}
            empty={<p className="state soft">No model has this name.</p>}
          />
        </>
      )}
    </div>
  )
}
