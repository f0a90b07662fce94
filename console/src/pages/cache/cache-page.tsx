/** How many responses are cached and where, how often they were used, and their purge. */
import { useState } from 'react'
import { useAct, useApi, useApiList, useMe } from '../../api/hooks.ts'
import { useSummary } from '../../api/summary.ts'
import { share } from '../../lib/format.ts'
import { hasRight } from '../../shell/page.ts'
import { A, Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Card, Facts, Nothing, Stat, Stats } from '../../ui/display.tsx'
import { Filters } from '../../ui/filters.tsx'
import { ModelField } from '../../ui/model-field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Combobox } from '../../ui/select.tsx'
import { Loaded } from '../../ui/states.tsx'
import { TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'
import { Bytes, Count } from '../../ui/values.tsx'

const PLACES = {
  memory: 'the memory of the process that answers this page',
  database: 'the database, for all gateways',
  valkey: 'Valkey, for all gateways',
}

export function CachePage() {
  const mayPurge = hasRight(useMe(), 'operate')
  const range = useTimeRange('24h')
  const size = useApi('GET /admin/v1/cache', {}, { refetch_ms: 15_000 })
  const summary = useSummary(range, { by: 'none', points: 'false' })
  return (
    <>
      <PageHead
        title="Cache"
        note="Responses that are given again to equal requests."
        acts={mayPurge && <PurgeButton />}
      />
      <div className="stack">
        <Filters>
          <TimeRangeSelect fallback="24h" />
        </Filters>
        <Loaded query={summary} lines={3}>
          {({ total }) => (
            <Stats>
              <Stat label="Answered from the cache" value={<Count value={total.cache_hits} isShort />} />
              <Stat label="Of all calls" value={share(total.calls === 0 ? 0 : total.cache_hits / total.calls)} />
            </Stats>
          )}
        </Loaded>
        <Card title="Now">
          <Loaded query={size} lines={3}>
            {({ storage, entries, bytes }) => (
              <Facts
                rows={[
                  ['Stored in', PLACES[storage]],
                  [
                    'Responses',
                    entries === null ? (
                      <Nothing key="n" text="Valkey does not say" />
                    ) : (
                      <Count key="n" value={entries} />
                    ),
                  ],
                  [
                    'Size',
                    bytes === null ? <Nothing key="b" text="Valkey does not say" /> : <Bytes key="b" value={bytes} />,
                  ],
                ]}
              />
            )}
          </Loaded>
        </Card>
        <p className="soft">
          A model is cached where its configuration says so, by the member <code>cache</code>, or where a request asks
          for it. <A to="/config">Open the configuration</A>.
        </p>
      </div>
    </>
  )
}

const NOTHING = { model: '', project_id: '' }

function PurgeButton() {
  const [isOpen, setOpen] = useState(false)
  const [{ model, project_id }, setChosen] = useState(NOTHING)
  const [typed, setTyped] = useState('')
  const options = { enabled: isOpen, limit: 50, keepPrevious: true }
  const { rows: projects, hasMore } = useApiList('GET /admin/v1/projects', { query: { q: typed } }, options)
  const purge = useAct('POST /admin/v1/cache/purge', {
    changes: ['GET /admin/v1/cache'],
    done: 'The cache was purged',
    onDone: () => setOpen(false),
  })
  const project = projects.find((one) => one.project_id === project_id)?.name ?? project_id
  return (
    <>
      <Button icon="trash" onClick={() => setOpen(true)}>
        Purge
      </Button>
      {isOpen && (
        <ConfirmDialog
          open
          onClose={() => setOpen(false)}
          title={
            model || project
              ? `Purge the cached responses ${model ? `of ${model}` : `to ${project}`}?`
              : 'Purge all cached responses?'
          }
          act="Purge"
          isBusy={purge.isPending}
          onConfirm={() => purge.mutate({ body: { ...(model && { model }), ...(project_id && { project_id }) } })}
        >
          <div className="form">
            <ModelField
              placeholder="All models"
              value={model}
              onChange={(value) => setChosen({ ...NOTHING, model: value })}
            />
            <Combobox
              label="Project"
              help="In place of a model. Responses that all projects share (the scope all) stay."
              placeholder="All projects"
              value={project_id}
              options={projects.map(({ project_id: value, name }) => ({ value, label: name || value }))}
              onChange={(value) => setChosen({ ...NOTHING, project_id: value })}
              onSearch={setTyped}
              hasMore={hasMore}
            />
            <p>The next request of each kind calls its provider again, and is charged. This cannot be undone.</p>
          </div>
        </ConfirmDialog>
      )}
    </>
  )
}
