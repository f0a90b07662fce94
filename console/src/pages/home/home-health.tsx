/** Shows what may need an operator: failing providers, and models that end. */
import { useApiAll, useApiList } from '../../api/hooks.ts'
import { problemOf } from '../../api/provider-health.ts'
import type { AdminModel, AdminProvider } from '../../api/types.ts'
import { A } from '../../ui/button.tsx'
import { Badge, Card } from '../../ui/display.tsx'
import { Failed, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/values.tsx'

const SHOWN = 8

export function HomeHealth() {
  const providers = useApiAll('GET /admin/v1/providers', {}, { refetch_ms: 15_000 })
  const models = useApiList('GET /admin/v1/models', { query: { ending: 'true' } }, { refetch_ms: 60_000 })
  return (
    <div className="grid-wide">
      <Card title="Providers" acts={<A to="/providers">All providers</A>}>
        {providers.isLoading ? (
          <Loading lines={3} />
        ) : providers.error ? (
          <Failed error={providers.error} onRetry={providers.reload} />
        ) : (
          <ProviderList providers={providers.rows} />
        )}
      </Card>
      <Card title="Models that end" acts={<A to="/models">All models</A>}>
        {models.isLoading ? <Loading lines={3} /> : <EndingModels models={models.rows} />}
      </Card>
    </div>
  )
}

function ProviderList({ providers }: { providers: AdminProvider[] }) {
  const rows = providers
    .map((provider) => ({ provider, problem: problemOf(provider) }))
    .sort((a, b) => Number(b.problem !== undefined) - Number(a.problem !== undefined))
  if (rows.length === 0) return <p className="soft">There are no providers yet.</p>
  return (
    <ul className="lines">
      {rows.slice(0, SHOWN).map(({ provider: { id, models }, problem }) => (
        <li key={id} className="row-between">
          <A to={`/providers/${encodeURIComponent(id)}`} className="cut">
            {id}
          </A>
          <span className="row">
            <span className="faint">{models} models</span>
            <Badge tone={problem ? 'danger' : 'ok'}>{problem ?? 'healthy'}</Badge>
          </span>
        </li>
      ))}
    </ul>
  )
}

function EndingModels({ models }: { models: AdminModel[] }) {
  const ending = models.toSorted(
    (a, b) => (a.retired_at ?? Number.MAX_SAFE_INTEGER) - (b.retired_at ?? Number.MAX_SAFE_INTEGER),
  )
  if (ending.length === 0) return <p className="soft">No model is deprecated or about to be.</p>
  return (
    <ul className="lines">
      {ending.slice(0, SHOWN).map(({ id, deprecated_at, retired_at, replaced_by }) => (
        <li key={id}>
          <span className="row-between">
            <A to={`/models/${id}`} className="cut">
              {id}
            </A>
            <span className="soft">
              {retired_at !== null ? (
                <>
                  retired <Time at={retired_at} isRelative />
                </>
              ) : (
                <>deprecated {deprecated_at !== null && <Time at={deprecated_at} isRelative />}</>
              )}
            </span>
          </span>
          {replaced_by && (
            <span className="faint">
              Use <A to={`/models/${replaced_by}`}>{replaced_by}</A> instead.
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}
