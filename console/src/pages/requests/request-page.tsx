/** One request: how long it took and why, what it used, how it was routed, and what it belongs to. */
import { useState } from 'react'
import { useApi, useMe } from '../../api/hooks.ts'
import type { Request, RequestContents } from '../../api/types.ts'
import { money } from '../../lib/format.ts'
import { text } from '../../lib/search.ts'
import { useAddress, useRouteParams } from '../../ui/address.ts'
import { A, ButtonLink } from '../../ui/button.tsx'
import { Card, Nothing, Stat, Stats } from '../../ui/display.tsx'
import { Neighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Count, Duration, Money, Time } from '../../ui/values.tsx'
import { Status } from './columns.tsx'
import { Contents } from './contents.tsx'
import { RequestFacts } from './facts.tsx'
import { FILTER_NAMES, type FilterValues, filtersOf } from './filters.ts'
import { useProjectNames } from './names.ts'
import { CurlButton } from './repeat.tsx'
import { Routing } from './routing.tsx'
import { SessionCard } from './session-card.tsx'
import { Timeline } from './timeline.tsx'

const NAMES = [...FILTER_NAMES, 'range', 'from', 'to', 'pages'] as const
const READERS = Object.fromEntries(NAMES.map((name) => [name, text()])) as Record<
  (typeof NAMES)[number],
  ReturnType<typeof text>
>

export function RequestPage() {
  const { id = '' } = useRouteParams()
  const [search] = useAddress(READERS)
  const kept = Object.fromEntries(Object.entries(search).filter(([, value]) => value !== ''))
  const request = useApi('GET /admin/v1/requests/{request_row}', { params: { request_row: id } })
  const [contents, setContents] = useState<RequestContents>()
  const shown = contents?.id === id ? contents : undefined
  return (
    <>
      <PageHead
        title="Request"
        crumbs={[{ to: '/requests', label: 'Requests', search: kept }]}
        aside={request.data && <Status row={request.data} />}
        note={request.data && <When request={request.data} />}
        acts={
          <>
            <RequestNeighbors id={id} filters={filtersOf(search)} kept={kept} />
            {request.data && <CurlButton request={request.data} contents={shown} />}
            {request.data && <PlaygroundLink request={request.data} />}
          </>
        }
      />
      <Loaded query={request} lines={12}>
        {(data) => <RequestDetail request={data} contents={shown} onContents={setContents} />}
      </Loaded>
    </>
  )
}

const When = ({ request: { model, path, created_at } }: { request: Request }) => (
  <>
    {model ? <A to={`/models/${model}`}>{model}</A> : <span className="mono">{path}</span>} <span>at</span>{' '}
    <Time at={created_at} />
  </>
)

type DetailProps = {
  request: Request
  contents: RequestContents | undefined
  onContents(contents: RequestContents): void
}

function RequestDetail({ request, contents, onContents }: DetailProps) {
  const { total_ms, first_byte_ms, input_tokens, output_tokens, cost, provider_cost, units, attempts } = request
  const nameOf = useProjectNames()
  const cached = Number(units?.cached_tokens ?? 0)
  const reasoning = Number(units?.reasoning_tokens ?? 0)
  return (
    <div className="stack">
      <Stats>
        <Stat
          label="Duration"
          value={<Duration ms={total_ms} />}
          note={
            first_byte_ms !== undefined && (
              <>
                first byte after <Duration ms={first_byte_ms} />
              </>
            )
          }
        />
        <Stat
          label="Input tokens"
          value={<Count value={input_tokens} />}
          note={cached > 0 && <>{<Count value={cached} />} from the provider's cache</>}
        />
        <Stat
          label="Output tokens"
          value={<Count value={output_tokens} />}
          note={reasoning > 0 && <>{<Count value={reasoning} />} of reasoning</>}
        />
        <Stat
          label="Cost"
          value={<Money value={cost} />}
          note={provider_cost !== null && provider_cost !== cost && `the provider charges ${money(provider_cost)}`}
        />
        <Stat
          label="Attempts"
          value={<Count value={attempts.length} />}
          note={request.cache && `cache: ${request.cache}`}
        />
      </Stats>
      <Card title="Timeline">
        {attempts.length > 0 ? <Timeline request={request} /> : <Nothing text="No provider was called." />}
      </Card>
      <Routing request={request} />
      <Card title="Details">
        <RequestFacts request={request} nameOf={nameOf} />
      </Card>
      <Contents key={request.id} request={request} contents={contents} onContents={onContents} />
      {request.session !== null && <SessionCard request={request} session={request.session} />}
    </div>
  )
}

function PlaygroundLink({ request: { id, model } }: { request: Request }) {
  const canCall = useMe()?.rights.includes('call') ?? false
  if (!canCall || model === '') return null
  return (
    <ButtonLink to="/playground" search={{ model, request: id }} icon="play">
      Open in playground
    </ButtonLink>
  )
}

type NeighborsProps = { id: string; filters: FilterValues; kept: Record<string, string> }

/** The newer and the older request of the same filters. */
function RequestNeighbors({ id, filters, kept }: NeighborsProps) {
  const { data } = useApi(
    'GET /admin/v1/requests/{request_row}/neighbors',
    { params: { request_row: id }, query: filters },
    { keepPrevious: false },
  )
  const target = (row: string | null | undefined) => (row ? { to: `/requests/${row}`, search: kept } : undefined)
  return (
    <Neighbors
      label="Requests beside this one"
      names={['Newer', 'Older']}
      before={target(data?.newer)}
      after={target(data?.older)}
      list={{ to: '/requests', search: kept }}
    />
  )
}
