/** How many responses are cached and where, how often they were used, and their purge. */
import { useState } from 'react'
import { useAct, useApi, useMe } from '../../api/hooks.ts'
import { useSummary } from '../../api/summary.ts'
import { share } from '../../lib/format.ts'
import { hasRight } from '../../shell/page.ts'
import { A, Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Card, Facts, Nothing, Stat, Stats } from '../../ui/display.tsx'
import { Filters } from '../../ui/filters.tsx'
import { ModelField } from '../../ui/model-field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
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

const ALL = ''

function PurgeButton() {
  const [isOpen, setOpen] = useState(false)
  const [model, setModel] = useState(ALL)
  const purge = useAct('POST /admin/v1/cache/purge', {
    changes: ['GET /admin/v1/cache'],
    done: 'The cache was purged',
    onDone: () => setOpen(false),
  })
  return (
    <>
      <Button icon="trash" onClick={() => setOpen(true)}>
        Purge
      </Button>
      {isOpen && (
        <ConfirmDialog
          open
          onClose={() => setOpen(false)}
          title={model === ALL ? 'Purge all cached responses?' : `Purge the cached responses of ${model}?`}
          act="Purge"
          isBusy={purge.isPending}
          onConfirm={() => purge.mutate({ body: model === ALL ? {} : { model } })}
        >
          <div className="form">
            <ModelField placeholder="All models" value={model} onChange={setModel} />
            <p>The next request of each kind calls its provider again, and is charged. This cannot be undone.</p>
          </div>
        </ConfirmDialog>
      )}
    </>
  )
}
