/** Lists the logged values of a request, each linked to the requests that share it. */
import { Fragment, type ReactNode } from 'react'
import type { Request } from '../../api/types.ts'
import { familyName } from '../../lib/families.ts'
import { count, share } from '../../lib/format.ts'
import { TokenLink } from '../../ui/account-link.tsx'
import { A } from '../../ui/button.tsx'
import { CopyableId, Facts } from '../../ui/display.tsx'
import { Duration, Time } from '../../ui/values.tsx'
import type { Names } from './columns.tsx'
import type { FilterName } from './filters.ts'

type Fact = [name: string, value: ReactNode]

export function RequestFacts({ request, nameOf }: { request: Request; nameOf: Names }) {
  return (
    <div className="grid-wide">
      <Facts rows={identity(request, nameOf)} />
      <Facts rows={call(request)} />
    </div>
  )
}

/** A link to the requests of the last 30 days with the same value; null: there is none. */
const same = (filter: FilterName, value: string | null, title = `Requests with the same ${filter}`): ReactNode =>
  value ? (
    <A to="/requests" search={{ [filter]: value, range: '30d' }} title={title}>
      {value}
    </A>
  ) : null
const sameIfAny = (filter: FilterName, value: string | null): ReactNode => same(filter, value) ?? undefined
const link = (to: string, text: string): ReactNode => <A to={to}>{text}</A>
const waited = (ms: number | undefined): ReactNode => (ms === undefined ? undefined : <Duration ms={ms} />)

const identity = (request: Request, nameOf: Names): Fact[] => {
  const { request_id, token_id, project_id, end_user, session, trace_id, tags, metadata = {}, task_id } = request
  return [
    ['Request id', copyable(request_id)],
    ['Project', project_id === null ? null : link(`/projects/${project_id}`, nameOf(project_id))],
    ['Token', <TokenLink key="token" id={token_id} />],
    ['End user', same('user', end_user)],
    ['Session', same('session', session)],
    ['Trace', same('trace_id', trace_id)],
    ['Tags', tagLinks(tags)],
    ['Metadata', pairsOf(metadata)],
    ['Task', task_id === undefined ? undefined : link(`/tasks/${task_id}`, task_id)],
    ['Playground', request.playground],
    ['Feedback', feedbackOf(request.feedback)],
  ]
}

const call = (request: Request): Fact[] => {
  const { method, path, model, requested_model, provider, target, key, family, stream, outcome } = request
  const { cache, cache_similarity, upstream_status, queued_ms, error, websocket } = request
  const similar = cache_similarity === undefined ? '' : `, ${share(cache_similarity)} similar`
  return [
    ['Call', callOf(method, path)],
    ['Model', same('model', model)],
    ['Asked for', requested_model],
    ['Provider', same('provider', provider)],
    ['Target', sameIfAny('target', target)],
    ['Key', key],
    ['API', family ? familyName(family) : undefined],
    ['Response', [stream ? 'streamed' : 'whole', outcome].filter(Boolean).join(', ')],
    ['Error', sameIfAny('error', error)],
    ['Provider status', upstream_status],
    ['Waited', waited(queued_ms)],
    ['Cache', cache && `${cache}${similar}`],
    ['Used', unitsOf(request.units)],
    ['Connection', websocket],
  ]
}

const copyable = (id: string): ReactNode => <CopyableId id={id} />
const callOf = (method = '', path: string | undefined): ReactNode =>
  path ? <span className="mono wrap">{`${method} ${path}`.trim()}</span> : null

const tagLinks = (tags: string[]): ReactNode =>
  tags.length === 0 ? undefined : (
    <span className="row">
      {tags.map((tag) => (
        <Fragment key={tag}>{same('tag', tag)}</Fragment>
      ))}
    </span>
  )

function feedbackOf(feedback: Request['feedback']): ReactNode {
  if (!feedback) return undefined
  const { score, text, created_ms } = feedback
  return (
    <span>
      {[score, text].filter((one) => one !== null).join(' · ')} <span className="faint">·</span>{' '}
      <Time at={created_ms / 1000} isRelative />
    </span>
  )
}

function pairsOf(metadata: Record<string, string>): ReactNode {
  const pairs = Object.entries(metadata)
  if (pairs.length === 0) return undefined
  return (
    <span className="stack-tight">
      {pairs.map(([name, value]) => (
        <span key={name} className="wrap">
          <span className="faint">{name}:</span> {value}
        </span>
      ))}
    </span>
  )
}

const unitName = (name: string, value: unknown): string => {
  const text = name.replaceAll('_', ' ')
  return value === 1 ? text.replace(/s$/, '') : text
}

/** What else was used than tokens, which stand above. */
function unitsOf(units: Request['units'] = {}): ReactNode {
  const others = Object.entries(units).filter(([name, value]) => !/^(input|output)_tokens$/.test(name) && value)
  if (others.length === 0) return undefined
  return others
    .map(([name, value]) => `${typeof value === 'number' ? count(value) : String(value)} ${unitName(name, value)}`)
    .join(', ')
}
